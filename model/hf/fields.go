package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"heddle/internal/strictjson"
)

// fields is a JSON object read field by field. The first error stays; whoever reads on gets zeros.
type fields struct {
	raw  map[string][]byte
	at   map[string]int // offset of the value in the file
	read map[string]bool
	err  error
}

// object takes an object apart; base is the offset of text in the file.
func object(text []byte, base int) *fields {
	f := &fields{map[string][]byte{}, map[string]int{}, map[string]bool{}, nil}
	r := strictjson.New(text)
	f.fail(base, r.Object(func(key string) (err error) {
		f.at[key] = base + r.Offset()
		f.raw[key], err = r.Raw()
		return err
	}))
	if f.err == nil {
		f.fail(base, r.End())
	}
	return f
}

func (f *fields) fail(base int, err error) {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		e.Offset += base
	}
	if f.err == nil {
		f.err = err
	}
}

// has tells whether a field is there and not null.
func (f *fields) has(key string) bool { return f.raw[key] != nil && string(f.raw[key]) != "null" }

// value lets get read a field that is there; it tells whether it was.
func (f *fields) value(key string, get func(r *strictjson.Reader) error) bool {
	f.read[key] = true
	if f.err != nil || !f.has(key) {
		return false
	}
	if err := get(strictjson.New(f.raw[key])); err != nil {
		f.fail(f.at[key], err)
		f.err = fmt.Errorf("field %s: %w", key, f.err)
	}
	return f.err == nil
}

// first is the first of several names of one field that is there.
func (f *fields) first(keys ...string) string {
	found := keys[0]
	for _, k := range keys {
		f.read[k] = true
		if f.has(k) && !f.has(found) {
			found = k
		}
	}
	return found
}

func (f *fields) integer(key string, missing int) int {
	v := missing
	f.value(key, func(r *strictjson.Reader) (err error) { v, err = r.Int(); return err })
	return v
}

// need is an integer that must be there.
func (f *fields) need(key string) int {
	if f.err == nil && !f.has(key) {
		f.err = fmt.Errorf("field %s is missing", key)
	}
	return f.integer(key, 0)
}

func (f *fields) number(key string, missing float64) float64 {
	v := missing
	f.value(key, func(r *strictjson.Reader) (err error) { v, err = r.Float(); return err })
	return v
}

func (f *fields) boolean(key string, missing bool) bool {
	v := missing
	f.value(key, func(r *strictjson.Reader) (err error) { v, err = r.Bool(); return err })
	return v
}

func (f *fields) text(key, missing string) string {
	v := missing
	f.value(key, func(r *strictjson.Reader) (err error) { v, err = r.String(); return err })
	return v
}

// integers is a list of integers, or one alone.
func (f *fields) integers(key string) (v []int) {
	if f.has(key) && f.raw[key][0] != '[' {
		return []int{f.integer(key, 0)}
	}
	f.value(key, func(r *strictjson.Reader) error {
		return r.Array(func(int) error {
			x, err := r.Int()
			v = append(v, x)
			return err
		})
	})
	return v
}

// object is a nested object, nil when there is none.
func (f *fields) object(key string) *fields {
	f.read[key] = true
	if f.err != nil || !f.has(key) {
		return nil
	}
	o := object(f.raw[key], f.at[key])
	if o.err != nil {
		f.err = fmt.Errorf("field %s: %w", key, o.err)
	}
	return o
}

// unread lists the fields nobody asked for, sorted.
func (f *fields) unread() (keys []string) {
	for _, k := range slices.Sorted(maps.Keys(f.raw)) {
		if !f.read[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// refuse makes an error about a field whose value is not supported.
func (f *fields) refuse(key, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("field %s is %.80s, which is not supported; hint: %s", key, f.raw[key], want)
	}
}
