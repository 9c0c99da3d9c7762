package backoff_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/pace"
)

func TestMain(m *testing.M) { leak.Main(m) }

// report is a source that records the brakes of its pacer, and may call a function for each.
type report struct {
	pace.Source

	mu     sync.Mutex
	brakes []pace.Brake
	then   func()
}

func (s *report) Brake(b pace.Brake) {
	s.mu.Lock()
	s.brakes = append(s.brakes, b)
	s.mu.Unlock()
	if s.then != nil {
		s.then()
	}
}

func (s *report) all() []pace.Brake {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]pace.Brake(nil), s.brakes...)
}

// pacerOf makes a pacer with a limit per window.
func pacerOf(t *testing.T, limit int64, per time.Duration) (*pace.Pacer, *report) {
	t.Helper()
	plan, err := schedule.Even(limit, per, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	source := &report{Source: pace.Static(plan)}
	p, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, source
}

var (
	refused = feedback.Advice{Kind: feedback.Refused, For: 2500 * time.Millisecond, Reason: "429"}
	warned  = feedback.Advice{Kind: feedback.Warned, Reason: "warned"}
	spent   = feedback.Advice{Kind: feedback.Spent, For: 9500 * time.Millisecond, Reason: "spent"}
)

// TestTellsEachBrake: one refusal causes a series of brakes. Each is reported when the one
// before it ends.
func TestTellsEachBrake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := pacerOf(t, 100, time.Second)
		l := backoff.New(p)
		if l.Pacer() != p {
			t.Error("it is another pacer")
		}
		start := time.Now()
		l.Observe(feedback.Advice{}, start)
		l.Observe(refused, start)
		l.Observe(refused, start.Add(-time.Second)) // the call was in flight
		time.Sleep(time.Hour)                       //nolint:forbidigo // In a bubble.
		var got string
		for _, b := range source.all() {
			got += fmt.Sprintf("%d %v %s; ", b.Percent, b.Until.Sub(start), b.Reason)
		}
		if want := "0 2.5s 429; 80 7.5s 429; 85 12.5s 429; 90 17.5s 429; 95 22.5s 429; "; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if got, want := l.Stats(), (backoff.Stats{Provider: "mail", Heard: 3, Refused: 2}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestHeedsSurprises: an answer with a remaining count of 0 has an effect when the pacer allows
// more calls than are made.
func TestHeedsSurprises(t *testing.T) {
	for name, c := range map[string]struct {
		taken, waiting int
		percent        int
	}{
		"nobody calls":      {0, 0, 0},
		"few call":          {9, 0, 0},
		"all is taken":      {10, 0, 100},
		"more is asked for": {12, 0, 100},
		"somebody waits":    {10, 1, 100},
		"one of many waits": {0, 11, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := pacerOf(t, 10, time.Second)
				l := backoff.New(p)
				for range c.taken {
					p.TryAcquire()
				}
				if c.waiting == 0 {
					time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // In a bubble: the window is over.
				}
				ctx, cancel := context.WithCancel(t.Context())
				for range c.waiting {
					go func() { _ = p.Acquire(ctx, time.Minute) }()
				}
				synctest.Wait()
				l.Observe(spent, time.Now())
				if got := p.Stats().BrakedTo; got != c.percent {
					t.Errorf("%d percent go, want %d", got, c.percent)
				}
				if got, want := l.Stats(), (backoff.Stats{Provider: "mail", Heard: 1, Spent: 1}); got != want {
					t.Errorf("counted %+v, want %+v", got, want)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestWindows: the length of windows is that of the pacer. Warnings with windows of a minute
// lower the speed once a minute. Answers before the first plan count too.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := pacerOf(t, 1000, time.Minute)
		l := backoff.New(p)
		for _, want := range []int{80, 80, 64} {
			l.Observe(warned, time.Now())
			if got := p.Stats().BrakedTo; got != want {
				t.Errorf("%d percent go, want %d", got, want)
			}
			time.Sleep(31 * time.Second) //nolint:forbidigo // In a bubble.
		}
		l.Observe(feedback.Advice{Kind: 77}, time.Now())
		l.Observe(feedback.Advice{Implausible: true}, time.Now())
		if got := l.Stats(); got.Heard != 4 || got.Implausible != 1 {
			t.Errorf("counted %+v: what is no advice counts", got)
		}

		late, err := pace.New(pace.Config{Provider: "mail", Source: silent{}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		backoff.New(late).Observe(spent, time.Now())
		if got := late.Stats().BrakedTo; got != 0 {
			t.Errorf("before there is a plan: %d percent go", got)
		}
	})
}

// silent is a source that reports nothing.
type silent struct{}

func (silent) Follow(ctx context.Context, _ pace.Receiver) error {
	<-ctx.Done()
	return nil
}

// TestNewsWhileTelling: a source or a logger that calls the provider while it gets a brake does
// not deadlock. Its answers count afterwards.
func TestNewsWhileTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := pacerOf(t, 100, time.Second)
		l := backoff.New(p)
		longer := refused
		longer.For = 9500 * time.Millisecond
		var once sync.Once
		source.then = func() { once.Do(func() { l.Observe(longer, time.Now()) }) }
		start := time.Now()
		l.Observe(refused, start)
		brakes := source.all()
		if n := len(brakes); n != 2 || brakes[1].Until.Sub(start) != longer.For {
			t.Errorf("told %+v", brakes)
		}
	})
}

// TestManyAtOnce: concurrent calls are safe, and the pacer gets one brake.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := pacerOf(t, 100, time.Second)
		l := backoff.New(p)
		sent := time.Now()
		time.Sleep(time.Millisecond) //nolint:forbidigo // In a bubble.
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 100 {
					l.Observe(feedback.Advice{}, sent)
					l.Observe(refused, sent)
					l.Stats()
				}
			})
		}
		all.Wait()
		if got := source.all(); len(got) != 1 {
			t.Errorf("told %+v", got)
		}
		if got, want := l.Stats(), (backoff.Stats{Provider: "mail", Heard: 20000, Refused: 10000}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // In a bubble: it comes to rest.
		if got := p.Stats().BrakedTo; got != 100 {
			t.Errorf("%d percent go", got)
		}
	})
}

// TestAllocations: an answer without an effect allocates nothing.
func TestAllocations(t *testing.T) {
	p, _ := pacerOf(t, 100, time.Second)
	l := backoff.New(p)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { l.Observe(feedback.Advice{}, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
