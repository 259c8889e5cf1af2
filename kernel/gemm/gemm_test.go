package gemm

import (
	"os"
	"testing"
)

func TestPrint(t *testing.T) {
	g, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/g.ptx", []byte(g.Module().PTX()), 0o644)
}
