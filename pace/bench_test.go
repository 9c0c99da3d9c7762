package pace_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

func open(tb testing.TB, c pace.Config) *pace.Pacer {
	tb.Helper()
	plan, err := schedule.Even(schedule.MaxLimit, time.Second, 1, 0)
	if err != nil {
		tb.Fatal(err)
	}
	c.Source = pace.Static(plan)
	p, err := pace.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	if err := p.Ready(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkSince(b *testing.B) {
	base := time.Now()
	var sum time.Duration
	for b.Loop() {
		sum += time.Since(base)
	}
}

func BenchmarkAcquire(b *testing.B) {
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		b.Run(smoothing.String(), func(b *testing.B) {
			p := open(b, pace.Config{Smoothing: smoothing})
			ctx := b.Context()
			for b.Loop() {
				if err := p.Acquire(ctx, time.Second); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAcquireFunc(b *testing.B) {
	p := open(b, pace.Config{})
	f := func(headgate.Instant, error) {}
	for b.Loop() {
		p.AcquireFunc(1, time.Second, f)
	}
}
