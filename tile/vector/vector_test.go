package vector

import (
	"os"
	"strings"
	"testing"
)

func TestSampleOfEveryOpPasses(t *testing.T) { replay(t, "testdata/sample.jsonl", len(ops())) }

func TestSharedVectorsPass(t *testing.T) {
	const path = "../../../shared/vectors/layout.jsonl"
	if _, err := os.Stat(path); err != nil {
		t.Skip("the full vector file lies outside the repository:", err)
	}
	replay(t, path, len(ops()))
}

func replay(t *testing.T, path string, ops int) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := Check(f, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range rep.Failures {
		t.Errorf("line %d %s:\n got %s\nwant %s", x.Line, x.Op, x.Got, x.Want)
	}
	if rep.Failed > 0 || len(rep.Ops) != ops {
		t.Errorf("passed %d, failed %d, %d ops of %d: %v", rep.Passed, rep.Failed, len(rep.Ops), ops, rep.Ops)
	}
}

func TestWrongAnswersAreFailuresAndWrongLinesErrors(t *testing.T) {
	const wrong = `{"op": "coalesce", "a": {"shape": [2,2], "stride": [1,2]}, "result": {"shape": 4, "stride": 2}, "table": [0,1,2,3]}
{"op": "coalesce", "a": {"shape": [2,2], "stride": [1,2]}, "result": {"shape": 4, "stride": 1}, "table": [0,1,2,4]}
{"op": "cosize", "a": {"shape": [2,2], "stride": [1,2]}, "result": 5}
{"op": "cosize", "a": {"shape": [2,2], "stride": [1,2]}, "result": 4}`
	rep, err := Check(strings.NewReader(wrong), 2)
	if err != nil || rep.Failed != 3 || rep.Passed != 1 || len(rep.Failures) != 2 || rep.Failures[1].Line != 2 {
		t.Errorf("got %+v, %v", rep, err)
	}
	for line, want := range map[string]string{
		`{"op": "weave"}`: "line 1: unknown op",
		`{"op": "coalesce", "a": {"shape": [2], "stride": 1}}`:            "same nesting",
		`{"op": "coalesce", "a": {"shape": 2, "stride": 1}, "result": 3}`: "line 1",
		`{"op": "coalesce"`: "line 1",
		`{"op": "eval", "a": {"shape": [99999999,99999999], "stride": [0,0]}, "result": [0]}`:  "2^48",
		`{"op": "eval", "a": {"shape": ` + strings.Repeat("[", 5000) + `, "stride": [0]}}`:     "line 1",
		`{"op": "eval", "a": {"shape": [99999999999999999999], "stride": [0]}, "result": [0]}`: "integer",
	} {
		if _, err := Check(strings.NewReader(line), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want an error with %q", line, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"op": "slice", "a": {"shape": [4, [2, 3]], "stride": [18, [3, 6]]}, "coord": [null, 2], "result": {"shape": [4], "stride": [18]}, "offset": 6}`)
	f.Add(`{"op": "tiled_divide", "a": {"shape": [3, 6], "stride": [1, 3]}, "tiler": [1, null], "result": {"shape": 1, "stride": 1}, "table": null}`)
	f.Add(`{"op": "swizzle", "bits": 60, "base": 60, "shift": 70, "x": [-1], "result": [0]}`)
	f.Fuzz(func(t *testing.T, s string) {
		rep, err := Check(strings.NewReader(s), 1)
		if err == nil && rep.Passed+rep.Failed > strings.Count(s, "\n")+1 {
			t.Errorf("%d cases in %q", rep.Passed+rep.Failed, s)
		}
	})
}

func TestFilesWithoutCasesAndEndlessLinesAreRefused(t *testing.T) {
	for text, want := range map[string]string{"": "no case", "\n \n": "no case", "\n" + strings.Repeat("x", maxLine+1): "line 2: more than"} {
		if _, err := Check(strings.NewReader(text), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: got %v, want %q", len(text), err, want)
		}
	}
}
