package ptx

import (
	"fmt"
	"strings"
)

// PTX is the module's text. An entry prints the same wherever it stands.
func (m *Module) PTX() string {
	target, shared := "sm_80", false
	for _, e := range m.Entries {
		target = max(target, e.Target) // "sm_80" < "sm_90" < "sm_90a"
		shared = shared || e.SharedBytes > 0
	}
	var w strings.Builder
	fmt.Fprintf(&w, ".version 8.5\n.target %s\n.address_size 64\n", target)
	if shared {
		w.WriteString(".extern .shared .align 1024 .b8 smem[];\n")
	}
	for _, e := range m.Entries {
		p := printer{w: &w, e: e}
		p.entry()
	}
	return w.String()
}

type printer struct {
	w      *strings.Builder
	e      *Entry
	labels int
	depth  int
}

func (p *printer) entry() {
	var params []string
	for _, q := range p.e.Params {
		switch q.Kind {
		case KindMap:
			params = append(params, fmt.Sprintf("\t.param .align 64 .b8 %s[128]", p.e.paramName(q.Name)))
		case KindF32:
			params = append(params, "\t.param .f32 "+p.e.paramName(q.Name))
		default:
			params = append(params, fmt.Sprintf("\t.param .u%d %s", 8*q.Kind.Size(), p.e.paramName(q.Name)))
		}
	}
	fmt.Fprintf(p.w, "\n.visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n.minnctapersm 1\n", p.e.Name, strings.Join(params, ",\n"), p.e.Threads)
	if p.e.Cluster > 1 {
		fmt.Fprintf(p.w, ".reqnctapercluster %d, 1, 1\n", p.e.Cluster)
	}
	p.w.WriteString("{\n")
	for c, decl := range [...]string{P: ".pred p", B32: ".b32 r", B64: ".b64 d", ClassAcc: ".b32 c"} {
		if n := p.e.Counts[c]; n > 0 {
			fmt.Fprintf(p.w, "\t.reg %s<%d>;\n", decl, n)
		}
	}
	p.depth = 1
	p.block(p.e.Body)
	p.w.WriteString("\tret;\n}\n")
}

func (e *Entry) paramName(name string) string { return e.Name + "_" + name }

func (p *printer) line(format string, args ...any) {
	p.w.WriteString(strings.Repeat("\t", p.depth))
	fmt.Fprintf(p.w, format, args...)
	p.w.WriteByte('\n')
}

func (p *printer) label(prefix string, n int) { fmt.Fprintf(p.w, "%s%d:\n", prefix, n) }

func (p *printer) block(b *Block) {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *Inst:
			p.line("%s", p.inst(n))
		case *If:
			p.branch(n)
		case *Loop:
			p.loop(n)
		}
	}
}

func uniform(o Operand) string {
	if o.level >= Warp {
		return ".uni"
	}
	return ""
}

func (p *printer) branch(n *If) {
	p.labels++
	l := p.labels
	p.line("@!%v bra%s ELSE%d;", n.Pred, uniform(n.Pred), l)
	p.depth++
	p.block(n.Then)
	p.depth--
	if len(n.Else.Nodes) > 0 {
		p.line("bra%s JOIN%d;", uniform(n.Pred), l)
		p.label("ELSE", l)
		p.depth++
		p.block(n.Else)
		p.depth--
		p.label("JOIN", l)
		return
	}
	p.label("ELSE", l)
}

func (p *printer) loop(n *Loop) {
	p.labels++
	l := p.labels
	p.label("LOOP", l)
	p.depth++
	p.block(n.Cond)
	p.line("@!%v bra%s DONE%d;", n.Pred, uniform(n.Pred), l)
	p.block(n.Body)
	p.line("bra.uni LOOP%d;", l)
	p.depth--
	p.label("DONE", l)
}

// inst is the text of one instruction, with its semicolon.
func (p *printer) inst(in *Inst) string {
	if in.Op == OpMov {
		s := fmt.Sprintf("mov.%s %v, %v;", [...]string{"pred", "b32", "b64", "b32"}[in.Dst[0].class], in.Dst[0], in.Src[0])
		return p.guarded(in, s)
	}
	var pairs []string
	for i, d := range in.Dst {
		if i == 0 {
			pairs = append(pairs, "{d}", d.String())
		}
		pairs = append(pairs, fmt.Sprintf("{d%d}", i), d.String())
	}
	for i, s := range in.Src {
		pairs = append(pairs, fmt.Sprintf("{%d}", i), p.operand(s))
	}
	pairs = append(pairs, p.derived(in)...)
	s := strings.NewReplacer(pairs...).Replace(ops[in.Op].PTX)
	if strings.HasPrefix(s, "{ ") { // a block of its own
		return s
	}
	return p.guarded(in, s+";")
}

func (p *printer) guarded(in *Inst, s string) string {
	if in.Guard.Valid() {
		return "@" + in.Guard.String() + " " + s
	}
	return s
}

func (p *printer) operand(o Operand) string {
	if o.class != ClassAcc {
		return o.String()
	}
	regs := make([]string, o.imm)
	for i := range regs {
		regs[i] = fmt.Sprintf("c%d", int(o.reg)+i)
	}
	return "{" + strings.Join(regs, ", ") + "}"
}

// derived are the marks of the templates that stand for something made from an operand: the N of an accumulator, one register of it, a parameter's name.
func (p *printer) derived(in *Inst) []string {
	if len(in.Src) == 0 {
		return nil
	}
	switch s := in.Src[0]; {
	case in.Op == OpAccRead:
		return []string{"{a0}", fmt.Sprintf("c%d", int(s.reg)+int(in.Src[1].imm))}
	case s.class == ClassAcc:
		return []string{"{n0}", fmt.Sprint(2 * s.imm)}
	case strings.Contains(ops[in.Op].PTX, "{p0}"):
		return []string{"{p0}", p.e.paramName(p.e.Params[s.imm].Name)}
	}
	return nil
}

func mnemonic(ptx string) string {
	if ptx == "" {
		return "mov"
	}
	ptx = strings.TrimPrefix(ptx, "{ ")
	for strings.HasPrefix(ptx, ".reg") || strings.HasPrefix(ptx, "W:") { // the declarations and label of a block
		_, rest, ok := strings.Cut(ptx, " ")
		if strings.HasPrefix(ptx, ".reg") {
			_, rest, ok = strings.Cut(ptx, "; ")
		}
		if !ok {
			break
		}
		ptx = rest
	}
	word, _, _ := strings.Cut(ptx, " ")
	return word
}
