package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// fields splits a protobuf message into "number: value" with its numbers and the bytes of what is nested.
func fields(t *testing.T, b []byte) (out map[uint64][][]byte, ints map[uint64]uint64) {
	t.Helper()
	out, ints = map[uint64][][]byte{}, map[uint64]uint64{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		v, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 {
			t.Fatalf("no varint in %x", b)
		}
		b = b[n+m:]
		switch tag & 7 {
		case 0:
			ints[tag>>3] = v
		case 2:
			out[tag>>3] = append(out[tag>>3], b[:v])
			b = b[v:]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
	}
	return out, ints
}

// Begins and ends on each track nest, and say what was recorded.
func TestPerfettoHoldsWhatWasRecorded(t *testing.T) {
	events := []Event{
		{Name: "outer", Cat: Phase, Rank: 1, Track: Host, Start: 1000, Dur: 100},
		{Name: "inner", Cat: Phase, Rank: 1, Track: Host, Start: 1010, Dur: 20, Args: []Arg{Int("n", -3), Text("t", "µ")}},
		{Name: "across", Cat: Kernel, Rank: 1, Track: Host, Start: 1020, Dur: 300},
		{Name: "next", Cat: Phase, Rank: 1, Track: Host, Start: 1100, Dur: 1},
	}
	var b bytes.Buffer
	if err := WritePerfetto(&b, events); err != nil {
		t.Fatal(err)
	}
	names := map[uint64]string{}
	var got []string
	packets, _ := fields(t, b.Bytes())
	for _, p := range packets[1] {
		parts, ints := fields(t, p)
		for _, d := range parts[60] {
			texts, numbers := fields(t, d)
			if len(texts[2]) > 0 {
				names[numbers[1]] = string(texts[2][0])
				if numbers[5] != processUUID(1) {
					t.Errorf("track %s has parent %d", texts[2][0], numbers[5])
				}
			}
		}
		for _, e := range parts[11] {
			texts, numbers := fields(t, e)
			line := fmt.Sprintf("%d %s ", ints[8], names[numbers[11]])
			if numbers[9] == 2 {
				got = append(got, line+"end")
				continue
			}
			line += string(texts[22][0]) + " " + string(texts[23][0])
			for _, a := range texts[4] {
				s, n := fields(t, a)
				line += fmt.Sprintf(" %s=%s%d", s[10][0], bytes.Join(s[6], nil), int64(n[4]))
			}
			got = append(got, line)
		}
	}
	want := []string{
		"1000 host user_annotation outer", "1010 host user_annotation inner n=-3 t=µ0", "1020 host +1 kernel across",
		"1030 host end", "1100 host end", "1100 host user_annotation next", "1101 host end", "1320 host +1 end",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
