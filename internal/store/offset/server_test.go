package offset_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/store/offset"
	"github.com/headgate/headgate/internal/testkit/memcached"
)

// watcher queries a real server's time, with its own clock.
type watcher struct {
	tb     testing.TB
	client *meta.Client
	start  time.Time
}

func (w *watcher) now() time.Duration { return time.Since(w.start) }

// askAt waits until at, and takes a sample.
func (w *watcher) askAt(at time.Duration) offset.Sample {
	w.tb.Helper()
	select {
	case <-time.After(at - w.now()):
	case <-w.tb.Context().Done():
	}
	ctx, cancel := context.WithTimeout(w.tb.Context(), 10*time.Second)
	defer cancel()
	s := offset.Sample{Before: w.now()}
	stats, err := w.client.Stats(ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	s.After = w.now()
	if s.Second, err = strconv.ParseInt(stats["time"], 10, 64); err != nil {
		w.tb.Fatal(err)
	}
	return s
}

// sweeps narrows an estimate in three sweeps of 9.
func (w *watcher) sweeps(e *offset.Estimator) {
	const trip = 200 * time.Microsecond
	for range 3 {
		var times [9]time.Duration
		e.Sweep(w.now(), trip, times[:])
		for _, at := range times {
			e.Add(w.askAt(at))
		}
	}
}

// TestRealServer: the clocks of two callers are 40 s apart. In a few seconds, both find the
// time of one server within some milliseconds, and so agree.
//
// A busy machine delays the server's ticks. The test passes with the first successful attempt
// of several, and checks in every attempt what must always be true.
func TestRealServer(t *testing.T) {
	server := memcached.Start(t)
	client, err := meta.New(meta.Config{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	one := &watcher{t, client, time.Now()}
	other := &watcher{t, client, time.Now().Add(-40 * time.Second)}
	for attempt := 0; time.Since(one.start) < 90*time.Second; attempt++ {
		a, b := newEstimator(t, offset.Config{}), newEstimator(t, offset.Config{})
		began := time.Now()
		one.sweeps(a)
		other.sweeps(b)
		elapsed := time.Since(began)
		first, _ := a.At(one.now())
		second, _ := b.At(other.now())
		apart := (first.Offset - second.Offset - 40*time.Second).Abs()
		t.Logf("attempt %d: ±%v and ±%v after %v; %v apart", attempt, first.Bound, second.Bound, elapsed, apart)
		if wall := time.Duration(time.Now().UnixNano()); (one.now() + first.Offset - wall).Abs() > 3*time.Second {
			t.Fatalf("%v by the server, and %v by the wall's clock", one.now()+first.Offset, wall)
		}
		if first.Bound < 15*time.Millisecond && second.Bound < 15*time.Millisecond &&
			apart <= first.Bound+second.Bound+time.Millisecond {
			return
		}
	}
	t.Error("no attempt made two callers agree")
}
