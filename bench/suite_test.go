package bench

import (
	"errors"
	"testing"

	"heddle/kernel/gemm"
	"heddle/ptx"
)

type runnerFunc func(*ptx.Module, ptx.Launch, *ptx.Args) error

func (f runnerFunc) Run(m *ptx.Module, l ptx.Launch, a *ptx.Args) error { return f(m, l, a) }

// A runner that does nothing leaves NaN behind: every case must fail. A runner that faults ends the suite at once.
func TestSuiteSeesIdleAndFaultyRunners(t *testing.T) {
	some := gemm.Family()[:2]
	cases, failed := 0, 0
	idle := runnerFunc(func(*ptx.Module, ptx.Launch, *ptx.Args) error { return nil })
	if err := CheckGEMM(idle, 132, 2, some, func(r CaseResult) {
		cases++
		if !r.OK {
			failed++
		}
	}); err != nil || cases <= 12*len(some) || failed != cases {
		t.Errorf("idle runner: %d cases, %d failed, %v", cases, failed, err)
	}
	broken := errors.New("device lost")
	cases = 0
	err := CheckGEMM(runnerFunc(func(*ptx.Module, ptx.Launch, *ptx.Args) error { return broken }), 132, 2, some, func(CaseResult) { cases++ })
	if !errors.Is(err, broken) || cases != 1 {
		t.Errorf("broken runner: %d cases, %v", cases, err)
	}
}
