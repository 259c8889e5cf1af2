package analyze

import (
	"strings"
	"testing"
)

func TestAdviceOnAGapWithoutCauseDependsOnWhoRecorded(t *testing.T) {
	r := &Report{Causes: []Total{{Cause: string(CauseUnknown), US: 5}}, Files: []File{{Format: "heddle"}}}
	if got := advise(r); len(got) != 1 || !strings.HasPrefix(got[0].Text, "nothing") {
		t.Errorf("a run of heddle is told %v", got)
	}
	r.Files = append(r.Files, File{Format: "nsys"})
	if got := advise(r); len(got) != 1 || !strings.HasPrefix(got[0].Text, "record") {
		t.Errorf("beside another file: %v", got)
	}
}
