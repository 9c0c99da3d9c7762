package proxy

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/openloop"
)

// latencies is one side of the scene, with its percentiles in nanoseconds, one for each round.
type latencies struct {
	*process

	load            *openloop.Load
	times           openloop.Times // of this round
	p50, p99, delay []float64
}

// turn loads the side once, and keeps the times of its requests.
func (l *latencies) turn(ctx context.Context, requests int) error {
	runtime.GC()
	times, err := l.load.Send(ctx, requests, time.Second/throttleRate)
	if err != nil {
		return fmt.Errorf("%s: %w\nThe log of the process ends with:\n%s", l.name, err, l.logged())
	}
	l.times.Latency = append(l.times.Latency, times.Latency...)
	l.times.Delay = append(l.times.Delay, times.Delay...)
	return nil
}

// sum ends a round. It appends the percentiles of the round if the round counts.
func (l *latencies) sum(counts bool) {
	all, delays := l.times.Latency, l.times.Delay
	slices.Sort(all)
	slices.Sort(delays)
	if counts {
		l.p50 = append(l.p50, float64(all[len(all)/2]))
		l.p99 = append(l.p99, float64(all[len(all)*99/100]))
		l.delay = append(l.delay, float64(delays[len(delays)*99/100]))
	}
	l.times = openloop.Times{Latency: all[:0], Delay: delays[:0]}
}

// neverQueued checks that the requests passed the throttle, and that none of them waited.
func (l *latencies) neverQueued(ctx context.Context) error {
	text, err := l.metrics(ctx)
	switch {
	case err != nil:
		return err
	case !strings.Contains(text, "\nheadgate_throttle_work_seconds_total "),
		strings.Contains(text, "\nheadgate_throttle_work_seconds_total 0\n"):
		return fmt.Errorf("proxy: no request passed the throttle of %s: check its configuration", l.name)
	case !strings.Contains(text, "\nheadgate_throttle_waited_total 0\n"):
		return fmt.Errorf("proxy: requests waited in the throttle of %s: raise its concurrency", l.name)
	}
	return nil
}
