package pace_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
)

// TestBrakeEndsWithAWindow: a brake ends with the first window that begins after the brake's
// end, also without calls around that time.
func TestBrakeEndsWithAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 10, pace.Config{})
		edge := time.Now()
		p.Brake(pace.Brake{Until: edge.Add(3500 * time.Millisecond)})
		sleep(3600 * time.Millisecond)
		if n := burst(p); n != 0 {
			t.Errorf("%d in the window in which the brake ended", n)
		}
		sleep(500 * time.Millisecond)
		if n := burst(p); n != 10 {
			t.Errorf("%d in the window after it", n)
		}
	})
}

// TestBrakesAddUp: the weaker of two brakes still applies after the stronger one has ended, in
// either order.
func TestBrakesAddUp(t *testing.T) {
	for _, softFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("soft first ", softFirst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p := static(t, 10, pace.Config{})
				soft := pace.Brake{Until: time.Now().Add(time.Minute), Percent: 50, Reason: "soft-limit"}
				hard := pace.Brake{Until: time.Now().Add(time.Second), Reason: "429 Retry-After"}
				if softFirst {
					p.Brake(soft)
					p.Brake(hard)
				} else {
					p.Brake(hard)
					p.Brake(soft)
				}
				sleep(5500 * time.Millisecond)
				if n := burst(p); n != 5 {
					t.Errorf("%d of 10 in a window, while a brake of 50 percent holds", n)
				}
			})
		})
	}
}

// TestBrakeOfSmallParts: half of 10 a second over 96 instances is 5 a second, not 0.
func TestBrakeOfSmallParts(t *testing.T) {
	for _, c := range []struct{ limit, instances, percent int }{{10, 96, 50}, {1, 1, 50}, {95, 96, 90}, {97, 96, 10}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			const windows = 200
			sum := int64(0)
			for w := int64(1_000_000); w < 1_000_000+windows; w++ {
				in := int64(0)
				for i := range c.instances {
					in += even(t, int64(c.limit), time.Second, c.instances, i).Braked(w, c.percent)
				}
				if in > int64(c.limit) {
					t.Fatalf("%d in window %d", in, w)
				}
				sum += in
			}
			want := float64(max(c.limit*c.percent/100, 1)) * windows
			if float64(sum) > want+1 || float64(sum) < want*0.9 {
				t.Errorf("%d units in %d windows, want %.0f", sum, windows, want)
			}
		})
	}
}

// TestBrakesAreNotAFlood: a provider refuses every call, and each caller makes the brake a
// little longer. This does not cause a log line and a message to all instances for each call.
func TestBrakesAreNotAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		s := script()
		p, err := pace.New(pace.Config{Source: s, Logger: slog.New(lineCounter{&lines})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		(<-s.to).Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
		lines.Store(0)
		for range 1000 {
			p.Brake(pace.Brake{Until: time.Now().Add(time.Second), Reason: "429 Retry-After"})
			sleep(time.Millisecond)
		}
		if lines.Load() > 20 || s.brakes.Load() > 20 {
			t.Errorf("%d lines of the log and %d messages to all instances in a second", lines.Load(), s.brakes.Load())
		}
	})
}

type lineCounter struct{ lines *atomic.Int64 }

func (lineCounter) Enabled(context.Context, slog.Level) bool { return true }

func (l lineCounter) Handle(context.Context, slog.Record) error { l.lines.Add(1); return nil }

func (l lineCounter) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l lineCounter) WithGroup(string) slog.Handler { return l }
