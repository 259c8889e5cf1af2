package ptx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"heddle/ptx"
)

// Each misuse that the Go compiler cannot see is refused, with a line of this file and a word that says why.
func TestBuilderRefuses(t *testing.T) {
	other := ptx.New("other", 32, 1)
	for name, c := range map[string]struct {
		want    string
		threads int
		write   func(k *ptx.Builder)
	}{
		"zero value":             {"zero value", 128, func(k *ptx.Builder) { k.Tid().Add(ptx.U32{}) }},
		"another kernel's value": {"another kernel", 128, func(k *ptx.Builder) { k.Tid().Add(other.Tid()) }},
		"value used after its If": {"has ended", 128, func(k *ptx.Builder) {
			var x ptx.U32
			k.If(k.Tid().Lt(k.U32(3)), func() { x = k.Tid().Plus(1) })
			x.Plus(1)
		}},
		"value used after its For": {"has ended", 128, func(k *ptx.Builder) {
			var x ptx.U32
			k.For(k.U32(0), k.U32(4), k.U32(1), func(i ptx.U32) { x = i })
			x.Plus(1)
		}},
		"value used after When": {"has ended", 128, func(k *ptx.Builder) {
			var x ptx.U32
			k.When(k.Tid().Lt(k.U32(3)), func() { x = k.Tid().Plus(1) })
			x.Plus(1)
		}},
		"aligned under a lane": {"varies by lane", 128, func(k *ptx.Builder) { k.If(k.Lane().Eq(k.U32(0)), func() { k.SyncCTA() }) }},
		"wgmma under a warp":   {"whole warpgroup", 128, func(k *ptx.Builder) { k.If(k.WarpIndex().Eq(k.U32(0)), func() { k.WgmmaFence() }) }},
		"aligned in a loop by lane": {"varies by lane", 128, func(k *ptx.Builder) {
			k.For(k.Tid(), k.U32(99), k.U32(1), func(ptx.U32) { k.WarpSync() })
		}},
		"shuffle in a loop's condition": {"loop's condition", 128, func(k *ptx.Builder) {
			k.While(func() ptx.Pred { return k.Tid().ShuffleXor(1).Lt(k.Lane()) }, func() {})
		}},
		"barrier inside When": {"inside When", 128, func(k *ptx.Builder) { k.When(k.NumCTAs().Lt(k.U32(3)), func() { k.SyncCTA() }) }},
		"wait inside When": {"inside When", 128, func(k *ptx.Builder) {
			b := k.Bars("b", 1)
			k.When(k.NumCTAs().Lt(k.U32(3)), func() { b.Wait(k.U32(0)) })
		}},
		"loop inside When": {"inside When", 128, func(k *ptx.Builder) {
			k.When(k.Tid().Lt(k.U32(3)), func() { k.For(k.U32(0), k.U32(2), k.U32(1), func(ptx.U32) {}) })
		}},
		"uniform Var set to a lane": {"set to something that varies by lane", 128, func(k *ptx.Builder) { ptx.NewVar(k, k.U32(0)).Set(k.Lane()) }},
		"uniform Var set by lane": {"varies by lane", 128, func(k *ptx.Builder) {
			v := ptx.NewVar(k, k.U32(0))
			k.If(k.Lane().Eq(k.U32(0)), func() { v.Set(k.U32(1)) })
		}},
		"too much shared memory": {"bytes of shared memory", 128, func(k *ptx.Builder) { k.Shared("big", 232449, 16) }},
		"odd alignment":          {"power of two", 128, func(k *ptx.Builder) { k.Shared("odd", 16, 48) }},
		"registers that sum too high": {"registers per 128 threads", 384, func(k *ptx.Builder) {
			k.Role("p", 1, 40, func() {})
			k.Role("c", 2, 240, func() {})
		}},
		"registers off the grid":   {"multiple of 8", 384, func(k *ptx.Builder) { k.Role("p", 1, 25, func() {}) }},
		"role beyond the CTA":      {"warpgroups 0..1 of a CTA of 1", 128, func(k *ptx.Builder) { k.Role("p", 2, 0, func() {}) }},
		"product without a fence":  {"without WgmmaFence", 128, func(k *ptx.Builder) { product(k, false, true, true) }},
		"product without a commit": {"without wgmma.commit_group", 128, func(k *ptx.Builder) { product(k, true, false, false) }},
		"accumulator read early":   {"may still write it", 128, func(k *ptx.Builder) { product(k, true, true, false).F32(0) }},
		"fragment written after the fence": {"written after the last WgmmaFence", 128, func(k *ptx.Builder) {
			d, acc := k.Desc(k.Shared("t", 8192, 1024).Addr(), ptx.KMajor(ptx.Swizzle128)), k.NewAcc(64)
			k.WgmmaFence()
			u := k.Tid().Plus(1)
			acc.MMABF16R([4]ptx.U32{u, u, u, u}, d, k.Bool(false), 0)
			k.WgmmaCommit()
			k.WgmmaWait(0)
		}},
		"accumulator width":        {"multiple of 8", 128, func(k *ptx.Builder) { k.NewAcc(12) }},
		"two parameters, one name": {"two parameters", 128, func(k *ptx.Builder) { k.ParamU32("x"); k.ParamF32("x") }},
		"threads":                  {"a CTA of 100 threads", 100, func(k *ptx.Builder) {}},
		"fault in a role":          {"role consumer", 128, func(k *ptx.Builder) { k.Role("consumer", 1, 0, func() { k.Tid().Add(ptx.U32{}) }) }},
	} {
		t.Run(name, func(t *testing.T) {
			k := ptx.New("bad", c.threads, 1)
			c.write(k)
			_, err := k.Build()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "verify_test.go:") {
				t.Errorf("got %v, want an error with %q and a line of this file", err, c.want)
			}
		})
	}
}

func product(k *ptx.Builder, fence, commit, wait bool) *ptx.Acc {
	d := k.Desc(k.Shared("t", 8192, 1024).Addr(), ptx.KMajor(ptx.Swizzle128))
	acc := k.NewAcc(64)
	if fence {
		k.WgmmaFence()
	}
	acc.MMABF16(d, d, k.Bool(false), 0, 0)
	if commit {
		k.WgmmaCommit()
	}
	if wait {
		k.WgmmaWait(0)
	}
	return acc
}

// The error lists ten faults and no more.
func TestBuilderKeepsGoing(t *testing.T) {
	k := ptx.New("bad", 32, 1)
	for range 30 {
		k.Tid().Add(ptx.U32{})
	}
	_, err := k.Build()
	if got := strings.Count(err.Error(), "zero value"); got != 10 {
		t.Errorf("%d faults listed, want 10", got)
	}
}

// The Go compiler refuses a value of one kind where another is wanted.
func TestGoRefusesMixedKinds(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	dir, err := os.MkdirTemp(filepath.Dir(file), "testdata-refused-") // inside the module, so that the import resolves
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const head = "package refused\n\nimport \"heddle/ptx\"\n\nfunc f(k *ptx.Builder, p ptx.ParamPtr, m ptx.ParamMap, bar ptx.Bar, acc *ptx.Acc) {\n\tu, x := k.Tid(), k.F32(1)\n\t_, _ = u, x\n\t"
	for _, line := range []string{
		"u.Add(u.Lt(u))",     // a predicate as a number
		"k.If(u, func() {})", // a number as a condition
		"x.Add(u)",           // integer as float
		"bar.Map(u).Wait(u)", // a remote barrier can be arrived at, not waited on
		"p.LoadF32().At(u)",  // a value as an address
		"k.Desc(p.GAddr, ptx.KMajor(ptx.Swizzle128))", // global memory as an operand tile
		"m.Load2(p.GAddr, u, u, bar)",                 // TMA into global memory
		"acc.MMABF16(u, u, u.Lt(u), 0, 0)",
		"p.StoreF32x4([3]ptx.F32{x, x, x})", // a vector of the wrong arity
	} {
		if err := os.WriteFile(filepath.Join(dir, "f.go"), []byte(head+line+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "vet", "./"+filepath.Base(dir)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "cannot use") && !strings.Contains(string(out), "undefined") {
			t.Errorf("%s: got %v\n%s", line, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f.go"), []byte(head+"u.Add(u)\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", "./"+filepath.Base(dir)).CombinedOutput(); err != nil {
		t.Errorf("a right use is refused: %v\n%s", err, out)
	}
}
