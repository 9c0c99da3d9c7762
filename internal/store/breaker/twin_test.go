package breaker_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/property"
)

// result is the result of a call, as the twin records it.
type result struct {
	began, ended time.Duration
	ok           bool
}

// twin keeps all results and probes since the last change of state, and computes everything
// from them again.
type twin struct {
	c         breaker.Config
	open      bool
	since     time.Duration
	results   []result        // Closed: results of calls that began after the closing.
	probes    []time.Duration // Open: the beginning of each probe.
	failed    time.Duration   // The time at which the last probe failed, or -1 while it is in flight.
	abandoned bool            // The last probe ended with Unknown.
}

// wait gives the wait for the next probe after failed probes.
func (w *twin) wait(failed int) time.Duration {
	d := w.c.Probe
	for range failed {
		d = min(2*d, w.c.MaxProbe)
	}
	return d
}

func (w *twin) nextProbe() time.Duration {
	n := len(w.probes)
	switch {
	case w.abandoned:
		return w.probes[n-1]
	case n > 0 && w.failed < 0:
		return w.probes[n-1] + w.c.Lease
	case n > 0:
		return w.failed + w.wait(w.failures())
	default:
		return w.since + w.wait(0)
	}
}

// failures counts probes that failed or never reported. probes does not keep abandoned ones.
func (w *twin) failures() int { return len(w.probes) }

func (w *twin) allow(now time.Duration) bool {
	if !w.open {
		return true
	}
	if now < w.nextProbe() {
		return false
	}
	if w.abandoned {
		w.probes = w.probes[:len(w.probes)-1]
	}
	w.probes, w.failed, w.abandoned = append(w.probes, now), -1, false
	return true
}

func (w *twin) done(r result) bool {
	switch {
	case !w.open && r.began >= w.since:
		w.results = append(w.results, r)
		row := 0
		for _, r := range w.results {
			if row++; r.ok {
				row = 0
			}
		}
		if row < w.c.Failures {
			return false
		}
		*w = twin{c: w.c, open: true, since: r.ended, failed: -1}
		return true
	case w.open && r.ok && r.began > w.since:
		*w = twin{c: w.c, since: r.ended}
		return true
	case w.inFlight(r.began) && !r.ok:
		w.failed = r.ended
	}
	return false
}

func (w *twin) inFlight(began time.Duration) bool {
	n := len(w.probes)
	return w.open && n > 0 && w.failed < 0 && !w.abandoned && w.probes[n-1] == began
}

func (w *twin) unknown(began time.Duration) {
	if w.inFlight(began) {
		w.abandoned = true
	}
}

func (w *twin) state() breaker.State {
	switch {
	case !w.open:
		return breaker.Closed
	case len(w.probes) > 0 && w.failed < 0 && !w.abandoned:
		return breaker.HalfOpen
	default:
		return breaker.Open
	}
}

// TestTwin compares a Breaker with the twin in random histories, with late and reordered
// results.
func TestTwin(t *testing.T) {
	property.Check(t, func(t *property.T) {
		c := breaker.Config{
			Failures: property.IntRange(1, 4).Draw(t, "failures"),
			Probe:    time.Duration(property.IntRange(1, 20).Draw(t, "probe")),
			Lease:    time.Duration(property.IntRange(1, 40).Draw(t, "lease")),
		}
		c.MaxProbe = c.Probe * time.Duration(property.IntRange(1, 9).Draw(t, "max"))
		b, w := breaker.New(c), &twin{c: c, since: -1 << 62}
		now, began := time.Duration(0), []time.Duration{0}
		for range property.IntRange(1, 120).Draw(t, "events") {
			now += time.Duration(property.IntRange(0, 12).Draw(t, "pass"))
			switch call := property.SampledFrom(began).Draw(t, "call"); property.IntRange(0, 5).Draw(t, "event") {
			case 0:
				b.Unknown(call)
				w.unknown(call)
			case 1, 2, 3:
				ok := property.IntRange(0, 3).Draw(t, "ok") == 0
				_, changed := b.Done(call, now, ok)
				if want := w.done(result{call, now, ok}); changed != want {
					t.Fatalf("at %d the result %v of %d: changed %v, want %v", now, ok, call, changed, want)
				}
			default:
				got, want := b.Allow(now), w.allow(now)
				if got != want {
					t.Fatalf("at %d: allowed %v, want %v", now, got, want)
				}
				if got {
					began = append(began, now)
				}
			}
			if b.State() != w.state() {
				t.Fatalf("at %d: %v, want %v", now, b.State(), w.state())
			}
		}
	})
}
