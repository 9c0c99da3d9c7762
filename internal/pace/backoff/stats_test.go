package backoff_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/pace"
)

// TestCalls: a call takes its units, waits as configured, and is counted when it is sent.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := pacerOf(t, 5, time.Second)
		l := backoff.New(p)
		start := time.Now()
		for _, units := range []int64{0, 3, 2, 0, 4} {
			if err := l.Acquire(t.Context(), units, time.Minute); err != nil {
				t.Error(err)
			}
			if at := l.Sending(units == 4); at != time.Now() {
				t.Errorf("sent at %v", at)
			}
		}
		if elapsed, n := time.Since(start), p.Stats().Acquired; elapsed != time.Second || n != 9 {
			t.Errorf("%d units in %v", n, elapsed)
		}
		if err := l.Acquire(t.Context(), 5, time.Millisecond); !errors.Is(err, pace.ErrTimeout) {
			t.Error(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		for _, units := range []int64{0, 1} {
			if err := l.Acquire(ended, units, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("%d units of a call that has ended: %v", units, err)
			}
		}
		if got, want := l.Stats(), (backoff.Stats{Provider: "mail", Sent: 5, Retried: 1}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

func TestMaxWait(t *testing.T) {
	long, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		ctx              context.Context
		configured, want time.Duration
	}{
		{t.Context(), 0, time.Minute},
		{long, 0, pace.Forever},
		{long, time.Second, time.Second},
		{t.Context(), -1, -1},
		{t.Context(), pace.Forever, pace.Forever},
	} {
		if got := backoff.MaxWait(c.ctx, c.configured); got != c.want {
			t.Errorf("%v: %v, want %v", c.configured, got, c.want)
		}
	}
}

// silentPacer makes a pacer without a plan, which needs little memory.
func silentPacer(t *testing.T, name string) *pace.Pacer {
	t.Helper()
	p, err := pace.New(pace.Config{Provider: name, Source: silent{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestListeners: each pacer has one Listener for all callers, and statistics list them by name.
func TestListeners(t *testing.T) {
	var ls backoff.Listeners
	if ls.Listener(nil) != nil || len(ls.Stats()) != 0 {
		t.Error("there is somebody for no pacer")
	}
	b, a := silentPacer(t, "b"), silentPacer(t, "a")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ls.Listener(a).Observe(feedback.Advice{}, time.Now())
			ls.Listener(b).Sending(false)
		})
	}
	all.Wait()
	got := ls.Stats()
	if len(got) != 2 || got[0] != (backoff.Stats{Provider: "a", Heard: 20}) || got[1] != (backoff.Stats{Provider: "b", Sent: 20}) {
		t.Errorf("counted %+v", got)
	}
	if ls.Listener(a).Pacer() != a || ls.Listener(b) == ls.Listener(a) {
		t.Error("the Listeners are mixed up")
	}
}

// TestListenersAreBounded: pacers beyond the bound of remembered ones also pace.
func TestListenersAreBounded(t *testing.T) {
	var ls backoff.Listeners
	for range backoff.MaxListeners {
		p := silentPacer(t, "one of many")
		p.Close()
		ls.Listener(p)
	}
	last := silentPacer(t, "last")
	ls.Listener(last).Observe(feedback.RefusedFor(time.Minute, "429"), time.Now())
	if got := last.Stats().BrakedTo; got != 0 {
		t.Errorf("%d percent go", got)
	}
	one, other := ls.Listener(last), ls.Listener(last)
	if one == other || len(ls.Stats()) != backoff.MaxListeners {
		t.Errorf("%d are remembered", len(ls.Stats()))
	}
}
