package etcd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestEstimate: a steady demand is reported as its average, a growing demand at once, and a
// falling demand within a few reports.
func TestEstimate(t *testing.T) {
	var e estimate
	report := func(asked int64, times int) (last int64) {
		for range times {
			last = e.next(asked)
		}
		return (last + hundredths - 1) / hundredths
	}
	for _, c := range []struct {
		says            string
		asked           int64
		times           int
		atLeast, atMost int64
	}{
		{"the first sample", 5, 1, 5, 5},
		{"a regular stream", 5, 100, 5, 5},
		{"it rises", 1000, 1, 1000, 1000},
		{"and stays", 1000, 20, 1000, 1000},
		{"it stops", 0, 2, 240, 260},
		{"for longer", 0, 4, 0, 20},
		{"for good", 0, 90, 0, 1},
		{"beyond all bounds", 1 << 62, 1, maxDemand, maxDemand},
		{"it stops again", -5, 60, 0, 1},
	} {
		if got := report(c.asked, c.times); got < c.atLeast || got > c.atMost {
			t.Errorf("%s: %d, want %d to %d", c.says, got, c.atLeast, c.atMost)
		}
	}
}

// TestEstimateOfPoisson: an irregular stream is reported close to its mean, whatever single
// windows contain.
func TestEstimateOfPoisson(t *testing.T) {
	for _, mean := range []float64{2, 5, 100} {
		var e estimate
		random := rand.New(rand.NewPCG(1, uint64(mean)))
		for n := range 2000 {
			var asked int64
			for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
				asked++
			}
			got := float64(e.next(asked)) / hundredths
			if slack := 1 + 3*math.Sqrt(mean); n > 64 && (got < mean-slack/2 || got > mean+slack) {
				t.Fatalf("mean %v: %v is reported after a window with %d", mean, got, asked)
			}
		}
	}
}
