package pace_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestRate is the story of one instance with a rate that changes.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
		ready := make(chan error, 1)
		go func() { ready <- p.Ready(t.Context()) }()
		to.Rate(pace.Rate{Amount: 10_000})
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
		if n := burst(p); n != 0 {
			t.Errorf("%d permits at the start, want none: nothing is saved", n)
		}
		sleep(99 * time.Millisecond)
		if n := burst(p); n != 0 {
			t.Errorf("%d permits after 99 ms, want none", n)
		}
		sleep(2 * time.Millisecond)
		if n := burst(p); n != 1 {
			t.Errorf("%d permits after 101 ms, want 1", n)
		}
		sleep(time.Minute)
		if n := burst(p); n != 1 {
			t.Errorf("%d permits after an idle minute at 10/s, want 1", n)
		}
		to.Rate(pace.Rate{Amount: 1_000_000})
		if n := burst(p); n != 0 {
			t.Errorf("%d permits at the start of a larger rate, want none", n)
		}
		sleep(time.Minute)
		if n := burst(p); n != 100 {
			t.Errorf("%d permits after an idle minute at 1,000/s, want those of 0.1 s", n)
		}
		sleep(time.Minute)
		to.Rate(pace.Rate{Amount: 200_000})
		if n := burst(p); n != 20 {
			t.Errorf("%d saved permits after a change to 200/s, want 20", n)
		}
		to.Rate(pace.Rate{Amount: 0})
		sleep(time.Minute)
		if n := burst(p); n != 0 {
			t.Errorf("%d permits at a rate of 0", n)
		}
		to.Rate(pace.Rate{Amount: 500})
		sleep(3900 * time.Millisecond)
		if n := burst(p); n != 1 {
			t.Errorf("%d permits within 3.9 s at 0.5/s, want 1", n)
		}
		if s := p.Stats(); s.Acquired != 123 || s.Part != 1 || s.Limit != 1 || s.Per != time.Second {
			t.Errorf("%+v, want 123 units, and 1 in a second", s)
		}
	})
}

// TestRateWaiters has callers that wait: in order, one after the other, also across changes.
func TestRateWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
		var at []time.Duration
		began := time.Now()
		for range 10 {
			p.AcquireFunc(1, pace.Forever, func(headgate.Instant, error) { at = append(at, time.Since(began).Round(time.Millisecond)) })
		}
		to.Rate(pace.Rate{Amount: 1000})
		sleep(2500 * time.Millisecond)
		to.Rate(pace.Rate{Amount: 2000}) // Half of the third permit is there: the rest takes half as long.
		sleep(1250 * time.Millisecond)
		to.Rate(pace.Rate{Amount: 10_000})
		sleep(time.Second)
		synctest.Wait()
		want := []int{1000, 2000, 2750, 3250, 3750, 3850, 3950, 4050, 4150, 4250}
		for i := range want {
			if len(at) != len(want) || (at[i]-time.Duration(want[i])*time.Millisecond).Abs() > time.Millisecond {
				t.Fatalf("granted at %v, want %v ms", at, want)
			}
		}
		p.AcquireFunc(15, pace.Forever, func(headgate.Instant, error) { at = append(at, time.Since(began)) })
		sleep(1600 * time.Millisecond)
		synctest.Wait()
		if len(at) != 11 {
			t.Error("a request of 15 units waits for more than 1.5 s at 10/s")
		}
	})
}

// TestRateRefusals: a wait that cannot succeed fails at once only if the rate does not grow.
func TestRateRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
		to.Rate(pace.Rate{Amount: 1000})
		failed := make(chan error, 1)
		go func() { failed <- p.AcquireN(t.Context(), 10, 5*time.Second) }()
		sleep(time.Second)
		if len(failed) > 0 {
			t.Fatal("the request fails although the rate may grow")
		}
		to.Rate(pace.Rate{Amount: 1000, Limited: true})
		synctest.Wait()
		var timeout *pace.TimeoutError
		if err := <-failed; !errors.As(err, &timeout) || timeout.Opens.IsZero() {
			t.Errorf("%v, want a timeout with the time of the permit", err)
		}
		began := time.Now()
		if err := p.AcquireN(t.Context(), 10, 5*time.Second); !errors.Is(err, pace.ErrTimeout) || time.Since(began) > 0 {
			t.Errorf("%v after %v, want a timeout at once", err, time.Since(began))
		}
		to.Rate(pace.Rate{Limited: true})
		if err := p.Acquire(t.Context(), time.Hour); !errors.Is(err, pace.ErrTimeout) {
			t.Errorf("%v at a rate of 0", err)
		}
		to.Rate(pace.Rate{Amount: 1000})
		to.Assign(pace.Assignment{Plan: even(t, 1000, time.Second, 1, 0)})
		if s := p.Stats(); s.Faults != 1 || s.Limit != 1 {
			t.Errorf("%+v after a plan, want a fault and the rate", s)
		}
	})
}

// TestRateExpiresAndBrakes: nothing goes after the end of the lease. A brake takes a part of the rate.
func TestRateExpiresAndBrakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
		to.Rate(pace.Rate{Amount: 100_000})
		to.ValidUntil(time.Now().Add(time.Second))
		if n := spend(p, 10*time.Second); n != 99 && n != 100 {
			t.Errorf("%d units until the end, want 100", n)
		}
		to.ValidUntil(time.Now().Add(time.Hour))
		if n := burst(p); n > 10 {
			t.Errorf("%d saved units, want at most 10", n)
		}
		p.Brake(pace.Brake{Until: time.Now().Add(10 * time.Second), Percent: 50})
		if n := spend(p, 10*time.Second); n < 499 || n > 501 {
			t.Errorf("%d units in 10 s at half of 100/s, want 500", n)
		}
		sleep(time.Second) // A brake ends with a window.
		burst(p)
		if n := spend(p, 10*time.Second); n < 999 || n > 1001 {
			t.Errorf("%d units in 10 s after the brake, want 1000", n)
		}
	})
}

// TestRequested counts each request once, whatever became of it.
func TestRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
		var want, before int64
		r := rand.New(rand.NewPCG(1, 1))
		for range 2000 {
			n := 1 + r.Int64N(3)
			want += n
			switch r.IntN(5) {
			case 0:
				p.TryAcquireN(n)
			case 1:
				p.AcquireFunc(n, time.Duration(r.Int64N(int64(time.Second))), func(headgate.Instant, error) {})
			case 2:
				p.AcquireFunc(n, pace.Forever, func(headgate.Instant, error) {}).Cancel()
			case 3:
				_ = p.AcquireN(t.Context(), n, time.Duration(r.Int64N(int64(20*time.Millisecond))))
			case 4:
				to.Rate(pace.Rate{Amount: r.Int64N(1_000_000), Limited: r.IntN(2) == 0})
				want -= n
				sleep(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
			}
			total, waiting := to.Requested()
			if total != want || total < before || waiting > total {
				t.Fatalf("%d requested units, %d wait, want %d", total, waiting, want)
			}
			before = total
		}
	})
}

// spend takes every permit for a time.
func spend(p *pace.Pacer, long time.Duration) (n int) {
	for end := time.Now().Add(long); time.Now().Before(end); sleep(time.Millisecond) {
		n += burst(p)
	}
	return n
}

// TestRateTwin compares a pacer with a bucket of real numbers, for random rates and requests.
func TestRateTwin(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			p, to := scriptedPacer(t, pace.Config{Provider: "mail"})
			var tokens, rate float64
			last := time.Now()
			pass := func(d time.Duration) {
				sleep(d)
				tokens = min(tokens+rate*time.Since(last).Seconds(), max(1, rate/10))
				if rate == 0 {
					tokens = 0
				}
				last = time.Now()
			}
			for range 400 {
				pass(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
				if r.IntN(4) == 0 {
					amount := r.Int64N(int64(1) << (2 + r.IntN(22)))
					to.Rate(pace.Rate{Amount: amount})
					switch next := float64(amount) / 1000; {
					case next == 0:
						tokens = 0
					case next > rate:
						tokens -= float64(int64(tokens + 1e-6))
						fallthrough
					default:
						rate, tokens = next, max(min(tokens, max(1, next/10)), 0)
					}
					rate = float64(amount) / 1000
				}
				n := burst(p)
				if float64(n) > tokens+1e-3 || float64(n) < tokens-1-1e-3 {
					t.Fatalf("seed %d: %d permits, want %.6f rounded down, at %.3f/s", seed, n, tokens, rate)
				}
				tokens -= float64(n)
			}
		})
	}
}
