package isa

import (
	"fmt"
	"strconv"
	"strings"
)

// Signature is a parsed Row.Sig.
type Signature struct {
	Recv   string // kind of the receiver, "" for Builder
	Name   string
	Params []Param
	Result string // kind of the result, "" for none
	Count  int    // results: more than 1 for a vector
}

// Param is one operand of a constructor.
type Param struct {
	Name  string
	Kind  string // value type, "" for an immediate
	Role  string // role of an immediate
	Count int    // registers: more than 1 for a vector
}

// Parse reads the row's signature.
func (r Row) Parse() (Signature, error) {
	open, end := strings.IndexByte(r.Sig, '('), strings.IndexByte(r.Sig, ')')
	if open < 0 || end < open {
		return Signature{}, fmt.Errorf("isa: %s: signature %q has no operand list", r.Op, r.Sig)
	}
	s := Signature{Name: r.Sig[:open]}
	if recv, name, ok := strings.Cut(s.Name, "."); ok {
		s.Recv, s.Name = recv, name
	}
	var err error
	if res := strings.TrimSpace(r.Sig[end+1:]); res != "" {
		if s.Result, s.Count, err = vector(res); err != nil {
			return s, fmt.Errorf("isa: %s: %w", r.Op, err)
		}
	}
	list := r.Sig[open+1 : end]
	if list == "" {
		return s, nil
	}
	for _, p := range strings.Split(list, ", ") {
		name, kind, ok := strings.Cut(p, " ")
		if !ok {
			return s, fmt.Errorf("isa: %s: operand %q, want name and kind", r.Op, p)
		}
		q := Param{Name: name, Count: 1}
		if role, imm := strings.CutPrefix(kind, "#"); imm {
			q.Role = role
		} else if q.Kind, q.Count, err = vector(kind); err != nil {
			return s, fmt.Errorf("isa: %s: %w", r.Op, err)
		}
		s.Params = append(s.Params, q)
	}
	return s, nil
}

// vector splits "[4]F32" into F32 and 4.
func vector(kind string) (string, int, error) {
	if !strings.HasPrefix(kind, "[") {
		return kind, 1, nil
	}
	n, rest, _ := strings.Cut(kind[1:], "]")
	c, err := strconv.Atoi(n)
	if err != nil || c < 2 || rest == "" {
		return "", 0, fmt.Errorf("vector kind %q", kind)
	}
	return rest, c, nil
}

// Kind is a value type of package ptx.
type Kind struct {
	Name  string
	Class string // register class: P, B32 or B64
	Doc   string
}

// Kinds are the value types, each a Go type of its own.
func Kinds() []Kind {
	return []Kind{
		{"U32", "B32", "a 32-bit unsigned integer"},
		{"S32", "B32", "a 32-bit signed integer"},
		{"U64", "B64", "a 64-bit unsigned integer"},
		{"F32", "B32", "a float32"},
		{"Pred", "P", "a predicate"},
		{"BF16x2", "B32", "two bf16, element 0 in the low half"},
		{"F16x2", "B32", "two f16, element 0 in the low half"},
		{"SAddr", "B32", "a byte address in the CTA's own shared memory (shared::cta)"},
		{"CAddr", "B32", "a byte address in the shared memory of some CTA of the cluster (shared::cluster)"},
		{"GAddr", "B64", "a byte address in global memory"},
		{"Bar", "B32", "the address of an mbarrier in the CTA's own shared memory"},
		{"CBar", "B32", "the address of an mbarrier of some CTA of the cluster: it can be arrived at, not waited on"},
		{"Desc", "B64", "a wgmma matrix descriptor: where a tile is in shared memory and how it lies there"},
		{"TensorMap", "B64", "the address of a tensor map"},
	}
}
