package train

import (
	"testing"
	"time"
)

func TestRateIsOfThisProcess(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want float64
	}{{Result{Tokens: 5120, before: 4992, TrainTime: time.Second}, 128}, {Result{Tokens: 5120, TrainTime: 2 * time.Second}, 2560}, {Result{Tokens: 4992, before: 4992}, 0}} {
		if got := c.r.Rate(); got != c.want {
			t.Errorf("%d tokens after %d in %v: %g a second, want %g", c.r.Tokens, c.r.before, c.r.TrainTime, got, c.want)
		}
	}
}
