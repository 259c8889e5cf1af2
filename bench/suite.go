package bench

import (
	"fmt"
	"time"

	"heddle/kernel"
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

// gemmConfigs spans the family: every tile width, both clusters, shallow and deep rings, each order.
func gemmConfigs() []gemm.Config {
	return []gemm.Config{
		gemm.Default(),
		{BN: 64, BK: 64, Stages: 4, Cluster: 1},
		{BN: 128, BK: 64, Stages: 5, Cluster: 2, Order: kernel.Order{Group: 2}},
		{BN: 192, BK: 64, Stages: 2, Cluster: 2},
		{BN: 256, BK: 64, Stages: 3, Cluster: 1, Order: kernel.Order{Group: 1, Serpentine: true}},
	}
}

// CheckGEMM runs every configuration on whole and ragged shapes with small integers, where the product is exact, over NaN-filled outputs with guard bands, on two
// draws each. It goes on after a wrong result, and stops where the runner itself fails: a device that faulted once gives no more answers.
func CheckGEMM(run ptx.Runner, sms int, each func(CaseResult)) error {
	shapes := [][3]int{{256, 256, 256}, {8, 8, 8}, {1, 16, 24}, {136, 200, 72}, {300, 520, 640}, {512, 256, 1024}, {1031, 776, 200}, {768, 1024, 2048}}
	for _, c := range gemmConfigs() {
		g, err := gemm.New(c)
		if err != nil {
			return err
		}
		for i, s := range shapes {
			for seed := range int64(2) {
				begin := time.Now()
				k, err := g.Case(s[0], s[1], s[2], seed+int64(10*i), sms)
				if err != nil {
					return err
				}
				r := CaseResult{Kernel: c.String(), Case: fmt.Sprintf("%s seed %d", k.Name, seed)}
				fault := run.Run(g.Module(), k.Launch, k.Args)
				err = fault
				if err == nil {
					err = k.Check()
				}
				if r.OK = err == nil; !r.OK {
					r.Error = err.Error()
				}
				r.Ms = time.Since(begin).Seconds() * 1e3
				each(r)
				if fault != nil {
					return fault
				}
			}
		}
	}
	return nil
}
