package fairshare

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestTakeAllocatesNothing checks that Take allocates nothing, whether a request is admitted
// or refused. No cycle starts and no new client joins during the measurement.
func TestTakeAllocatesNothing(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("invented-%d", i)
	}
	for _, c := range []struct {
		says     string
		capacity int64
		client   string // "" means a new name in Others for each request
		once     bool
		want     headgate.Reason
	}{
		{"admitted", 1 << 40, "A", false, headgate.WithinLimit},
		{"refused", 0, "A", false, headgate.Never},
		{"over its share", 2, "A", false, headgate.OverShare},
		{"others, admitted", 1 << 40, "", false, headgate.WithinLimit},
		{"others, refused", 4, "", false, headgate.OverShare},
		{"CountOnce, admitted", 1 << 40, "A", true, headgate.WithinLimit},
		{"CountOnce, refused", 2, "A", true, headgate.OverShare},
	} {
		for _, reclaim := range Reclaims() {
			l := storyOf(t, plain(func(config *Config) {
				config.Capacity, config.CountOnce, config.Reclaim, config.Weights, config.NewClientsPerCycle = c.capacity, c.once, reclaim, pinned("A B"), 0
			}))
			now, i := storyStart, 0
			var last headgate.Decision
			take := func() {
				i++
				now = now.Add(time.Microsecond) // Releases of loans are due meanwhile.
				name := c.client
				if name == "" {
					name = names[i%len(names)]
				}
				d, receipt := l.Take(now, Request{Client: name, ID: names[i%7]})
				if i%10 == 0 {
					l.Return(receipt)
				}
				last = d
			}
			for range 2000 {
				take() // The first release allocates its slices.
			}
			if n := testing.AllocsPerRun(1_000_000/1000, take); n != 0 {
				t.Errorf("%s, %v: Take allocates %v times, want 0", c.says, reclaim, n)
			}
			if last.Reason != c.want {
				t.Errorf("%s, %v: the decision is %v, want %v", c.says, reclaim, last.Reason, c.want)
			}
		}
	}
}
