package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"heddle/internal/cli"
)

func command(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestUnknownVerbIsUsageErrorInBothForms(t *testing.T) {
	code, out, errs := command("weave")
	if code != cli.Usage || out != "" || !strings.HasPrefix(errs, "heddle: ") {
		t.Errorf("got code %d, stdout %q, stderr %q", code, out, errs)
	}
	code, out, _ = command("--json", "weave")
	var v struct {
		Error string
		Code  int
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.Usage || v.Code != cli.Usage || v.Error == "" {
		t.Errorf("got code %d, stdout %q, %v", code, out, err)
	}
}

func TestHelpExitsZero(t *testing.T) {
	if code, out, _ := command("--help"); code != cli.OK || !strings.Contains(out, "Usage: heddle") {
		t.Errorf("got code %d, stdout %q", code, out)
	}
}
