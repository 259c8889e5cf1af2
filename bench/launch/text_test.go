package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/kernel/gemm"
)

// texts are the lab's kernels in every way of overlapping.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, name := range map[gemm.Overlap]string{gemm.Serial: "serial", gemm.Waits: "waits", gemm.Invites: "invites"} {
		z, err := newZero(o)
		if err != nil {
			t.Fatal(err)
		}
		all["zero-"+name] = z.module().PTX()
		c, err := gemm.ParseConfig("64x64x64-w1-c2x1-s4-g0")
		if err != nil {
			t.Fatal(err)
		}
		c.Overlap = o
		g, err := gemm.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all["gemm-"+name] = g.Module().PTX()
	}
	return all
}

// A stamped kernel keeps its parameters in front, takes one more, stamps once at each of its ends and once behind every wait, and assembles.
func TestStampedKernelsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Log("no ptxas on the PATH: the text is checked, not assembled")
	}
	for name, text := range texts(t) {
		got, err := stamped(text, enders(strings.HasPrefix(name, "zero")))
		if err != nil {
			t.Fatal(name, err)
		}
		waits := strings.Count(text, "griddepcontrol.wait;")
		if reds := strings.Count(got, "red.relaxed.gpu.global.min.u64"); reds != 2+waits || (waits > 0) == strings.HasSuffix(name, "serial") {
			t.Errorf("%s: %d stamps for %d waits", name, reds, waits)
		}
		head, _, _ := strings.Cut(text, "\n)\n")
		if !strings.HasPrefix(got, head+",\n\t.param .u64 stamps\n)\n") {
			t.Errorf("%s: parameters changed:\n%s", name, got[:600])
		}
		if ptxas == "" {
			continue
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "k.ptx")
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(ptxas, "-arch=sm_90a", "-o", filepath.Join(dir, "k.cubin"), file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestUnwaitedDropsEveryWaitAndNothingElse(t *testing.T) {
	for name, text := range texts(t) {
		got, err := unwaited(text)
		if strings.HasSuffix(name, "serial") {
			if err == nil {
				t.Errorf("%s: a kernel without waits was taken", name)
			}
			continue
		}
		if err != nil || strings.Contains(got, "griddepcontrol.wait") || strings.Count(text, "\n")-strings.Count(got, "\n") != strings.Count(text, "griddepcontrol.wait") ||
			strings.Count(got, "launch_dependents") != strings.Count(text, "launch_dependents") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStampsRefuseForeignText(t *testing.T) {
	for _, text := range []string{"", "\n)\n.maxntid 1\n{\n\tret;\n}", texts(t)["zero-waits"] + texts(t)["zero-waits"]} {
		if _, err := stamped(text, allEnd); err == nil {
			t.Errorf("stamped %.40q", text)
		}
	}
}
