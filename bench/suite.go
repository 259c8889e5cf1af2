package bench

import (
	"fmt"
	"time"

	"heddle/kernel/gemm"
	"heddle/ptx"
)

// CaseResult is one kernel run against its reference.
type CaseResult struct {
	Kernel string  `json:"kernel"`
	Case   string  `json:"case"`
	OK     bool    `json:"ok"`
	Error  string  `json:"error,omitempty"`
	Ms     float64 `json:"ms"` // compiling, copying, running and checking
}

// CheckGEMM runs configurations, such as gemm.Family, on whole and ragged shapes with small integers, where the product is exact, over NaN-filled outputs with guard bands, on so
// many draws each. It goes on after a wrong result, and stops where the runner itself fails: a device that faulted once gives no more answers.
func CheckGEMM(run ptx.Runner, sms, draws int, configs []gemm.Config, each func(CaseResult)) error {
	var kernels []*gemm.Gemm
	for _, c := range configs {
		g, err := gemm.New(c)
		if err != nil {
			return err
		}
		kernels = append(kernels, g)
	}
	for i, s := range [][3]int{{256, 256, 256}, {8, 8, 8}, {1, 16, 24}, {136, 200, 72}, {304, 520, 640}, {512, 256, 1024}, {1031, 776, 200}, {768, 1024, 2048}} {
		for seed := range int64(draws) {
			x := gemm.NewExact(s[0], s[1], s[2], seed+int64(10*i)) // one reference for all kernels
			for _, g := range kernels {
				if !g.Config.Takes(s[0], s[1], s[2]) {
					continue
				}
				r, fault := checkCase(run, g, x, sms)
				r.Case += fmt.Sprintf(" seed %d", seed)
				each(r)
				if fault != nil {
					return fault
				}
			}
		}
	}
	return nil
}

// checkCase runs one kernel on one product; fault is the runner's own error.
func checkCase(run ptx.Runner, g *gemm.Gemm, x *gemm.Exact, sms int) (r CaseResult, fault error) {
	begin := time.Now()
	k, err := x.Case(g, sms)
	r = CaseResult{Kernel: g.Config.String(), Case: k.Name}
	if err == nil {
		fault = run.Run(g.Module(), k.Launch, k.Args)
		err = fault
	}
	if err == nil {
		err = k.Check()
	}
	if r.OK = err == nil; !r.OK {
		r.Error = err.Error()
	}
	r.Ms = time.Since(begin).Seconds() * 1e3
	return r, fault
}
