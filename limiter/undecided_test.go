package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limiter"
)

// After an error the verdict is Deny, so that a caller that reads only the verdict fails
// closed.
func TestErrorsDeny(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{
		headgate.TokenBucket, headgate.LeakyBucket, headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow,
	} {
		l, c := headgate.Limit{Count: 7, Per: time.Second}, limiter.Config{Algorithm: algorithm, MaxMemory: 1 << 20}
		if algorithm == headgate.SlidingWindow {
			c.SubWindows = 10
		}
		single, err := limiter.NewSingle(l, c)
		if err != nil {
			t.Fatal(err)
		}
		keyed, err := limiter.New(l, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, cost := range []int64{-1, 1 << 60} {
			denied := func(what string, d headgate.Decision, err error) {
				if !errors.Is(err, headgate.ErrBadCost) || d != headgate.Undecided() || d.Verdict != headgate.Deny {
					t.Errorf("%v, %s of %d: %+v, %v, want %+v", algorithm, what, cost, d, err, headgate.Undecided())
				}
			}
			for what, decide := range map[string]func(d *headgate.Decision) error{
				"Single.Take": func(d *headgate.Decision) error { return single.Take(cost, d) },
				"Single.Peek": func(d *headgate.Decision) error { return single.Peek(cost, d) },
				"Keyed.Take":  func(d *headgate.Decision) error { return keyed.Take(t.Context(), "k", cost, d) },
				"Keyed.Peek":  func(d *headgate.Decision) error { return keyed.Peek(t.Context(), "k", cost, d) },
			} {
				d := used
				err := decide(&d)
				denied(what, d, err)
			}
			many := make([]headgate.Decision, 3)
			err = keyed.TakeMany(t.Context(), []string{"a", "b", "c"}, cost, many)
			for i := range many {
				denied("Keyed.TakeMany", many[i], err)
			}
		}
	}
}

// A constructor that fails returns nil.
func TestNothingBesideAnError(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog} {
		c := limiter.Config{Algorithm: algorithm}
		if s, err := limiter.NewSingle(headgate.Limit{Count: -1, Per: time.Second}, c); s != nil || err == nil {
			t.Errorf("%v: NewSingle returns %v, %v; want nil and an error", algorithm, s, err)
		}
		if k, err := limiter.New(headgate.Limit{Count: -1, Per: time.Second}, c); k != nil || err == nil {
			t.Errorf("%v: New returns %v, %v; want nil and an error", algorithm, k, err)
		}
	}
}
