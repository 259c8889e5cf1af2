package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"heddle/internal/mangle"
)

// tree builds what encoding/json's Unmarshal would, so that the two can be compared.
func tree(r *Reader) (any, error) {
	r.Offset()
	if r.pos >= len(r.text) {
		return nil, r.unexpected("a value")
	}
	switch c := r.text[r.pos]; c {
	case '{':
		m := map[string]any{}
		return m, r.Object(func(k string) (err error) { m[k], err = tree(r); return err })
	case '[':
		a := []any{}
		return a, r.Array(func(int) error { v, err := tree(r); a = append(a, v); return err })
	case '"':
		return r.String()
	case 't', 'f':
		return r.Bool()
	case 'n':
		if r.Null() {
			return nil, nil
		}
		return nil, r.unexpected("a value")
	}
	return r.Float()
}

func whole(text string) (any, error) {
	r := New([]byte(text))
	v, err := tree(r)
	return v, errors.Join(err, r.End())
}

// What is accepted has the value encoding/json gives it.
func TestAcceptedTextHasItsValue(t *testing.T) {
	for _, s := range []string{
		`null`, ` true `, `false`, `0`, `-0`, `-12.5e+3`, `1E2`, `""`, `"a\"\\\/\b\f\n\r\tz"`, `"\u00e9\ud83d\ude00é😀"`, `[]`, `[ ]`, `{ }`,
		`[1,[2,{"a":[]}], "x" ]`, "[" + strings.Repeat("{},[],", 100) + "0]", "{\n\t\"a\" : 1 ,\r\n \"A\":2, \"\":3}", `"\u0000"`, `1.7976931348623157e308`, `5e-324`, `"` + strings.Repeat("x", 5000) + `"`,
	} {
		got, err := whole(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %#v, want %#v", s, got, want)
		}
		if r := New([]byte(s)); r.Skip() != nil || r.End() != nil {
			t.Errorf("%s: Skip does not pass over it", s)
		}
	}
}

// Each text is refused by values and by Skip, at the byte given.
func TestMalformedTextIsRefusedWhereItIsWrong(t *testing.T) {
	cases := []struct {
		text string
		at   int
	}{
		{"", 0}, {" ", 1}, {"nul", 0}, {"nullx", 4}, {"tru", 0}, {"+1", 0}, {"01", 0}, {"-", 1}, {".5", 0}, {"1.", 2}, {"1e", 2}, {"1e+", 3}, {"0x1", 1},
		{"NaN", 0}, {"-Infinity", 1}, {"1 2", 2}, {"{}{}", 2}, {"[1,]", 3}, {"[,1]", 1}, {"[1 2]", 3}, {"[", 1}, {"[1", 2}, {`{"a"}`, 4}, {`{"a":}`, 5},
		{`{"a":1,}`, 7}, {`{a:1}`, 1}, {`{"a":1 "b":2}`, 7}, {`{"a":1,"b":2,"a":3}`, 13}, {`{"a":{"b":1,"\u0062":2}}`, 12}, {`'a'`, 0}, {`"a`, 2}, {`"\`, 2},
		{`"\x"`, 1}, {`"\u12"`, 1}, {`"\u12g4"`, 1}, {`"\u+123"`, 1}, {`"\ud800"`, 1}, {`"\ud800\u0041"`, 1}, {`"\udc00\ud800"`, 1}, {`"a\ud800x"`, 2}, {"\"a\nb\"", 2},
		{"\"\\n\tb\"", 3}, {"\"\xff\"", 1}, {"\"\\n\xc3\"", 1}, {"\"\xed\xa0\x80\"", 1}, {"\ufeff{}", 0}, {"[/**/]", 1}, {"[1]\x00", 3},
		{strings.Repeat("[", 65) + strings.Repeat("]", 65), 64}, {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), 64 * 5},
	}
	for _, c := range cases {
		_, err := whole(c.text)
		r := New([]byte(c.text))
		skip := r.Skip()
		if skip == nil {
			skip = r.End()
		}
		for _, err := range []error{err, skip} {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Offset != c.at {
				t.Errorf("%.60q: got %v, want an error at byte %d", c.text, err, c.at)
			}
		}
	}
}

func TestNumbersAreNotCoerced(t *testing.T) {
	for _, s := range []string{"-1", "1.0", "1e0", "18446744073709551616", `"1"`, "null"} {
		if v, err := New([]byte(s)).Uint(); err == nil {
			t.Errorf("Uint of %s: got %d", s, v)
		}
	}
	for _, s := range []string{"1.0", "1e0", "9223372036854775808", "true"} {
		if v, err := New([]byte(s)).Int(); err == nil {
			t.Errorf("Int of %s: got %d", s, v)
		}
	}
	if v, err := New([]byte("18446744073709551615")).Uint(); err != nil || v != math.MaxUint64 {
		t.Errorf("got %d, %v", v, err)
	}
	if v, err := New([]byte("-9223372036854775808")).Int(); err != nil || v != math.MinInt64 {
		t.Errorf("got %d, %v", v, err)
	}
	if v, err := New([]byte("1e309")).Float(); err == nil {
		t.Errorf("Float of 1e309: got %g", v)
	}
}

// FuzzReader: whatever we accept, encoding/json accepts with the same value; and Skip accepts what the values accept.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\ud83d\ude00"],"b":{"c":null}}`, `[true,false]`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := whole(s)
		r := New([]byte(s))
		skip := errors.Join(r.Skip(), r.End())
		if err != nil {
			if skip == nil && !strings.Contains(err.Error(), "float64") {
				t.Fatalf("Skip passes what is refused: %v", err)
			}
			return
		}
		if skip != nil {
			t.Fatalf("Skip refuses what is accepted: %v", skip)
		}
		var want any
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatalf("accepted, encoding/json says %v", err)
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

// Broken copies of texts: values and Skip agree on what is accepted, and nothing panics.
func TestMangledTextsDoNotPanic(t *testing.T) {
	mangle.Run(t, [][]byte{[]byte(`{"a":[1,-2.5e3,"\ud83d\ude00"],"b":{"c":null}}`), []byte(`[true,false,{"x":"y\n"},0.5]`)}, func(in []byte) {
		_, err := whole(string(in))
		r := New(in)
		if skip := errors.Join(r.Skip(), r.End()); (err == nil) != (skip == nil) && !strings.Contains(fmt.Sprint(err), "float64") {
			panic(fmt.Sprint(err, skip))
		}
	})
}
