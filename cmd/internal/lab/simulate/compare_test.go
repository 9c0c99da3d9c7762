package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// compared runs a limit of 100 a minute with all algorithms.
func compared(t *testing.T, traffic string, seed uint64, change func(*Comparison)) *Compared {
	t.Helper()
	c := &Comparison{
		Limit: headgate.Limit{Count: 100, Per: time.Minute}, Algorithms: headgate.Algorithms(), SubWindows: []int64{1, 2, 4, 12, 60},
		Traffic: traffic, Rate: Rate{100, time.Minute}, Keys: 1, Seed: seed, Length: 400 * time.Minute,
	}
	if change != nil {
		change(c)
	}
	done, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestAccuracy has the table of docs/choosing-limits.md: bursty traffic at 100 a minute, the mean of seeds 1 to 20. Each
// mean error is within a fifth of the one that theory and an independent program give, and no seed exceeds the bounds of the excess.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	want := map[int64]float64{0: 0.42, 1: 0.14, 2: 0.07, 4: 0.028, 12: 0.0083, 60: 0.0026}
	seeds := race.Fewer(20, 2)
	mean, excess := map[int64]float64{}, map[int64]int64{}
	for seed := range seeds {
		done := compared(t, "bursty", uint64(seed)+1, func(c *Comparison) {
			c.Algorithms = []headgate.Algorithm{headgate.FixedWindow, headgate.SlidingWindow}
		})
		for _, e := range done.Estimates {
			mean[e.SubWindows] += e.Mean / float64(seeds)
			if e.P99 < e.Mean {
				t.Errorf("seed %d, N=%d: p99 is %v, and the mean %v", seed, e.SubWindows, e.P99, e.Mean)
			}
		}
		for _, r := range done.Results {
			excess[r.SubWindows] = max(excess[r.SubWindows], r.WorstExcess)
		}
	}
	for n, part := range want {
		if got := mean[n]; math.Abs(got-part) > part/5 {
			t.Errorf("N=%d: the mean error is %.2f %%, want %.2f %% or a fifth more or less", n, 100*got, 100*part)
		}
	}
	if excess[4] > 45 || excess[60] > 8 {
		t.Errorf("the worst excess is %d %% at N=4 and %d %% at N=60, want at most 45 and 8", excess[4], excess[60])
	}
	if text, err := os.ReadFile(page); seeds == 20 {
		for _, row := range accuracyRows(mean, excess) {
			if err != nil || !strings.Contains(string(text), row+"\n") {
				t.Errorf("docs/choosing-limits.md lacks the row %s", row)
			}
		}
	}
	t.Logf("mean errors %v, worst excess in percent %v", mean, excess)
}

// TestPromises: in every traffic, sliding_log never exceeds its limit and never errs, token_bucket keeps its own promise,
// fixed_window admits at most twice its limit, and no counter is evicted.
func TestPromises(t *testing.T) {
	t.Parallel()
	for _, traffic := range Traffics()[:race.Fewer(len(Traffics()), 1)] {
		for name, change := range map[string]func(*Comparison){
			"one key":  func(c *Comparison) { c.Length = 100 * time.Minute },
			"jitter":   func(c *Comparison) { c.Jitter, c.Length = true, 20*time.Minute },
			"in turn":  func(c *Comparison) { c.Keys, c.Length = 7, 10*time.Minute },
			"by Zipf":  func(c *Comparison) { c.Keys, c.Zipf, c.Length = 20, 1.2, 6*time.Minute },
			"overload": func(c *Comparison) { c.Rate.Count, c.Length = 300, 20*time.Minute },
		} {
			done := compared(t, traffic, 3, change)
			for _, r := range done.Results {
				where := fmt.Sprintf("%s, %s: %s N=%d", traffic, name, r.Algorithm, r.SubWindows)
				if r.Requests != r.Admitted+r.Refused || r.Requests == 0 || r.Evictions != 0 {
					t.Errorf("%s: %+v", where, r)
				}
				switch r.Algorithm {
				case "sliding_log":
					if r.WorstExcess > 0 || r.FalseAllows+r.FalseDenies > 0 || r.OfLog != r.Admitted {
						t.Errorf("%s: %+v", where, r)
					}
				case "token_bucket":
					if r.Promise == nil || !r.Promise.Held {
						t.Errorf("%s: the promise did not hold: %+v", where, r.Promise)
					}
				case "fixed_window":
					if r.WorstExcess > 100 {
						t.Errorf("%s: %d units above the limit", where, r.WorstExcess)
					}
				}
			}
		}
	}
}

// TestComparisonsRepeat: two runs give the same bytes, and another seed gives others.
func TestComparisonsRepeat(t *testing.T) {
	t.Parallel()
	text := func(seed uint64) string {
		encoded, err := json.Marshal(compared(t, "retry", seed, func(c *Comparison) {
			c.Length, c.Keys, c.Zipf, c.Jitter = time.Duration(race.Fewer(6, 1))*time.Minute, 10, 1.1, true
		}))
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	first := text(1)
	if first != text(1) {
		t.Error("two runs with one seed differ")
	}
	if first == text(2) {
		t.Error("two seeds give one result")
	}
}

// TestMeasure: with Measure, each result has a time, and nothing else changes.
func TestMeasure(t *testing.T) {
	t.Parallel()
	short := func(c *Comparison) { c.Length = 10 * time.Minute }
	plain := compared(t, "poisson", 1, short)
	measured := compared(t, "poisson", 1, func(c *Comparison) { short(c); c.Measure = true })
	for i, r := range measured.Results {
		if r.NanosecondsPerDecision <= 0 {
			t.Errorf("%s has no time", r.Algorithm)
		}
		r.NanosecondsPerDecision = 0
		if a, b := fmt.Sprintf("%+v", *r), fmt.Sprintf("%+v", *plain.Results[i]); r.Promise == nil && a != b {
			t.Errorf("got %s\nwant %s", a, b)
		}
	}
}
