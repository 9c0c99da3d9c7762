package pace_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// static makes a pacer of one instance with a limit per second.
func static(t *testing.T, limit int64, c pace.Config) *pace.Pacer {
	t.Helper()
	plan, err := schedule.Even(limit, time.Second, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Source = pace.Static(plan)
	c.Provider = "provider"
	p, err := pace.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestArticle is the table of the article: a second with a limit of 3, of which 3 or 2 units are
// used at 250 ms.
func TestArticle(t *testing.T) {
	for _, c := range []struct {
		name    string
		gone    int
		maxWait time.Duration
		waits   time.Duration
		fails   bool
	}{
		{"waits for the next second", 3, 1000 * time.Millisecond, 750 * time.Millisecond, false},
		{"a wait of just so long is too long", 3, 750 * time.Millisecond, 0, true},
		{"a little longer is not", 3, 750*time.Millisecond + 1, 750 * time.Millisecond, false},
		{"does not wait", 3, 0, 0, true},
		{"a permit at once", 2, 0, 0, false},
		{"a permit at once, whatever the wait", 2, pace.Forever, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := static(t, 3, pace.Config{})
				toNextSecond()
				for range c.gone {
					if !p.TryAcquire() {
						t.Fatal("closed")
					}
				}
				sleep(250 * time.Millisecond)
				began := time.Now()
				err := p.Acquire(t.Context(), c.maxWait)
				if elapsed := time.Since(began); elapsed != c.waits || (err != nil) != c.fails {
					t.Errorf("%v after %v, want %v", err, elapsed, c.waits)
				}
				var late *pace.TimeoutError
				if c.fails && (!errors.As(err, &late) || !late.Opens.Equal(began.Add(750*time.Millisecond))) {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

// TestFirstCome: callers are served in the order of their arrival, whatever happens meanwhile.
func TestFirstCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := static(t, 10, pace.Config{})
		toNextSecond()
		var order []int
		var at []headgate.Instant
		for i := range 95 {
			p.AcquireFunc(1, pace.Forever, func(when headgate.Instant, err error) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				at = append(at, when)
			})
			if i%10 == 5 && p.TryAcquire() != (i < 10) {
				t.Errorf("at %d", i)
			}
		}
		sleep(20 * time.Second)
		synctest.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
		if len(order) != 95 {
			t.Errorf("%d were served", len(order))
		}
		for i := 10; i < len(at); i++ {
			if d := at[i].Sub(at[i-10]); d < time.Second/2 {
				t.Errorf("%d and %d are %v apart", i-10, i, d)
			}
		}
	})
}

// sleep passes time in a bubble.
func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a bubble of synctest.
}

func toNextSecond() { sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
