package adaptive

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/throttle"
)

func newService(t *testing.T, c Config) *Service {
	t.Helper()
	s, err := NewService("search", c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRule tells the story of a service that refuses, and recovers.
func TestRule(t *testing.T) {
	s := newService(t, Config{})
	now := headgate.Instant(0)
	for range 100 { // The service accepts half: nothing is dropped.
		if err := s.Begin(now, throttle.Sheddable, 0, false); err != nil {
			t.Fatal(err)
		}
		_ = s.Begin(now, throttle.Sheddable, 1, false)
		s.Accepted(now, throttle.Sheddable)
	}
	for range 200 { // It accepts nothing more.
		_ = s.Begin(now, throttle.Sheddable, 1, false)
	}
	err := s.Begin(now, throttle.Sheddable, 0.49, false) // (400 - 200) / 401
	drop, ok := errortype.As[*DropError](err)
	if !ok || drop.Service != "search" || drop.Class != throttle.Sheddable {
		t.Errorf("the error is %v", err)
	}
	if err := s.Begin(now, throttle.Sheddable, 0.51, false); err != nil {
		t.Errorf("beyond the probability: %v", err)
	}
	if err := s.Begin(now, throttle.Critical, 0, false); err != nil {
		t.Errorf("another class: %v", err)
	}
	for range 10_000 {
		_ = s.Begin(now, throttle.Sheddable, 1, false)
	}
	if err := s.Begin(now, throttle.Sheddable, 0.9, false); err != nil {
		t.Errorf("one of ten requests is sent: %v", err)
	}
	now = now.Add(2*time.Minute + 5*time.Second)
	if err := s.Begin(now, throttle.Sheddable, 0, false); err != nil {
		t.Errorf("after the window: %v", err)
	}
}

// TestAsCounted compares a Service with a list of all events.
func TestAsCounted(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newService(t, Config{Window: 24 * time.Second})
		type event struct {
			second                        int64
			class                         throttle.Class
			request, first, accept, retry int64
		}
		var all []event
		now := headgate.Instant(0)
		for range 500 {
			now = now.Add(time.Duration(r.Int64N(int64(600 * time.Millisecond))))
			if r.IntN(100) == 0 {
				now = now.Add(time.Duration(r.IntN(60)) * time.Second)
			}
			second, class := int64(now)/int64(time.Second), throttle.Class(r.IntN(throttle.ClassCount))
			var sum event
			for _, e := range all {
				if e.second <= second-parts {
					continue
				}
				if e.class == class {
					sum.request, sum.accept = sum.request+e.request, sum.accept+e.accept
				}
				sum.first, sum.retry = sum.first+e.first, sum.retry+e.retry
			}
			e := event{second: second, class: class}
			switch r.IntN(8) {
			case 0:
				s.Accepted(now, class)
				e.accept = 1
			case 1:
				s.Canceled(now, class)
				e.request = -1
			case 2:
				got := s.Retry(now)
				if want := float64(sum.retry+1) <= 0.1*float64(sum.first); got != want {
					t.Fatalf("seed %d: a retry: %v, want %v after %+v", seed, got, want, sum)
				} else if got {
					e.retry = 1
				}
			default:
				draw := r.Float64()
				requests, accepts := float64(max(sum.request, 0)), float64(max(sum.accept, 0))
				want := draw < min(max(0, (requests-2*accepts)/(requests+1)), 0.9)
				if got := s.Begin(now, class, draw, false) != nil; got != want {
					t.Fatalf("seed %d: dropped %v, want %v after %+v", seed, got, want, sum)
				}
				e.request, e.first = 1, 1
			}
			all = append(all, e)
		}
	}
}

// TestRetries: retries are at most a tenth of the requests, and never of retries.
func TestRetries(t *testing.T) {
	s := newService(t, Config{})
	retries := 0
	for range 1000 {
		_ = s.Begin(0, throttle.Critical, 1, false)
		if s.Retry(0) {
			retries++
			_ = s.Begin(0, throttle.Critical, 1, true)
		}
	}
	if retries != 100 {
		t.Errorf("%d retries of 1000 requests, want 100", retries)
	}
	none := newService(t, Config{Retries: -1})
	_ = none.Begin(0, throttle.Critical, 1, false)
	if none.Retry(0) {
		t.Error("a retry without any allowed")
	}
}

// A clock that steps back counts in the current part.
func TestTimeBackwards(t *testing.T) {
	s := newService(t, Config{})
	_ = s.Begin(headgate.Instant(time.Hour), throttle.Critical, 1, false)
	_ = s.Begin(0, throttle.Critical, 1, false)
	if err := s.Begin(headgate.Instant(time.Hour), throttle.Critical, 0.66, false); err == nil {
		t.Error("two refused requests count, so that two thirds are dropped")
	}
}

func TestFaultyConfigs(t *testing.T) {
	for _, c := range []Config{{K: 0.5}, {Most: 1.5}, {Most: -1}, {Window: time.Millisecond}, {Retries: 2}} {
		if _, err := NewService("a", c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// A request allocates nothing.
func TestAllocatesNothing(t *testing.T) {
	s := newService(t, Config{})
	if n := testing.AllocsPerRun(100, func() {
		_ = s.Begin(0, throttle.Critical, 1, false)
		s.Accepted(0, throttle.Critical)
	}); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
}
