package httppace_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
)

// TestHears: each kind of answer slows the pacer down as documented, and other answers do not.
func TestHears(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		fields  []string
		percent int
		reason  string
		heard   backoff.Stats
	}{
		"nothing":     {status: 200, percent: 100},
		"a failure":   {status: 500, fields: []string{"Retry-After", "9"}, percent: 100},
		"some left":   {status: 200, fields: []string{"RateLimit", `"a";r=1;t=9`}, percent: 100},
		"a warning":   {status: 200, fields: []string{"Headgate-Warning", `soft-limit; policy="a"`}, percent: 80, heard: backoff.Stats{Warned: 1}},
		"none left":   {status: 200, fields: []string{"RateLimit", `"a";r=0;t=9`}, heard: backoff.Stats{Spent: 1}},
		"too many":    {status: 429, fields: []string{"Retry-After", "9"}, heard: backoff.Stats{Refused: 1}},
		"unavailable": {status: 503, fields: []string{"Retry-After", "9"}, heard: backoff.Stats{Refused: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answer: func(int, *http.Request) reply { return answer(c.status, "", c.fields...) }}
				p := pacerOf(t, "mail", 100, time.Second)
				paced := transport(t, p, httppace.Config{Base: w})
				if _, err := do(paced, request(t.Context(), "GET", "")); err != nil {
					t.Fatal(err)
				}
				if got := p.Stats().BrakedTo; got != c.percent {
					t.Errorf("the pacer gives %d percent, want %d", got, c.percent)
				}
				c.heard.Provider, c.heard.Sent, c.heard.Heard = "mail", 1, 1
				if got := paced.Stats(); len(got) != 1 || got[0] != c.heard {
					t.Errorf("counted %+v, want %+v", got, c.heard)
				}
			})
		})
	}
}

// TestStopsAndGoesOnSlower: a stop has its full length, and the speed after it is lower from the
// first window on, also with many waiting callers.
func TestStopsAndGoesOnSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perSecond := make(map[int64]int)
		var mu sync.Mutex
		start := time.Now()
		w := &wire{answer: func(n int, req *http.Request) reply {
			mu.Lock()
			defer mu.Unlock()
			perSecond[int64(time.Since(start)/time.Second)]++
			return refusing(1, "Retry-After", "3")(n, req)
		}}
		p := pacerOf(t, "mail", 100, time.Second)
		paced := transport(t, p, httppace.Config{Base: w})
		ask := func() {
			if _, err := do(paced, request(t.Context(), "GET", "")); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // In a bubble.
		ask()
		var all sync.WaitGroup
		for range 3000 {
			all.Go(ask)
		}
		all.Wait()
		// The stop lasts from 0.3 s to 3.3 s, and the window of 3.3 s is also skipped. Then the speed is
		// 80 percent for 5 s, until 8.3 s, 85 percent until 13.3 s, and so on. The speed at the start of
		// a window applies to the whole window.
		want := map[int64]int{0: 1, 1: 0, 2: 0, 3: 0, 4: 80, 8: 80, 9: 85, 13: 85, 14: 90, 18: 90, 19: 95, 23: 95, 24: 100, 28: 100}
		for second, n := range want {
			if perSecond[second] != n {
				t.Errorf("second %d: %d requests, want %d (all: %v)", second, perSecond[second], n, perSecond)
			}
		}
	})
}

// fleet is a source that sends brakes to all of its pacers.
type fleet struct {
	pace.Source

	mu        sync.Mutex
	receivers []pace.Receiver
}

func (f *fleet) Follow(ctx context.Context, to pace.Receiver) error {
	f.mu.Lock()
	f.receivers = append(f.receivers, to)
	f.mu.Unlock()
	return f.Source.Follow(ctx, to)
}

func (f *fleet) Brake(b pace.Brake) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, to := range f.receivers {
		to.Brake(b)
	}
}

// TestFleetSlowsDown: when one instance is refused, the whole fleet stops, and then continues
// more slowly.
func TestFleetSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, err := schedule.Even(100, time.Second, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		source := &fleet{Source: pace.Static(plan)}
		var pacers []*pace.Pacer
		for range 3 {
			p, err := pace.New(pace.Config{Provider: "mail", Source: source, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			if err := p.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			pacers = append(pacers, p)
		}
		w := &wire{answer: refusing(1, "Retry-After", "3")}
		if _, err := do(transport(t, pacers[0], httppace.Config{Base: w}), request(t.Context(), "GET", "")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			after   time.Duration
			percent int
		}{{0, 0}, {2900 * time.Millisecond, 0}, {200 * time.Millisecond, 80}, {5 * time.Second, 85}, {time.Minute, 100}} {
			time.Sleep(c.after) //nolint:forbidigo // In a bubble.
			for i, p := range pacers {
				if got := p.Stats().BrakedTo; got != c.percent {
					t.Errorf("%v later: instance %d gives %d percent, want %d", c.after, i, got, c.percent)
				}
			}
		}
	})
}

// TestLearnsWhatIsBorne: a provider accepts half of the limit. After some time, the provider
// refuses few requests, and most of its capacity is used.
func TestLearnsWhatIsBorne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bears, limit, seconds = 50, 100, 120
		var mu sync.Mutex
		second, n, served, refused := int64(0), 0, 0, 0
		start := time.Now()
		w := &wire{answer: func(int, *http.Request) reply {
			mu.Lock()
			defer mu.Unlock()
			now := int64(time.Since(start) / time.Second)
			if now != second {
				second, n = now, 0
			}
			if n++; n > bears {
				if now >= 10 {
					refused++
				}
				return answer(http.StatusTooManyRequests, "", "Retry-After", "1")
			}
			if now >= 10 {
				served++
			}
			return answer(http.StatusOK, "")
		}}
		ctx := within(t, seconds*time.Second)
		paced := transport(t, pacerOf(t, "mail", limit, time.Second), httppace.Config{Base: w})
		var all sync.WaitGroup
		for range 2 * limit {
			all.Go(func() {
				for {
					if _, err := do(paced, request(ctx, "GET", "")); err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		t.Logf("%d served, %d refused", served, refused)
		if share := float64(served) / ((seconds - 10) * bears); share < 0.55 {
			t.Errorf("%.2f of what is borne was used", share)
		}
		if share := float64(refused) / float64(served); share > 0.03 {
			t.Errorf("%.4f of the requests were refused", share)
		}
	})
}

// TestHeedsWhatRemains: a client shares a provider with others, and sends less than its own
// limit. The client stops when the remaining count is 0, and is never refused.
func TestHeedsWhatRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period, lefts = 10 * time.Second, 15 // the units that other clients leave in ten seconds
		left, window, refused := lefts, int64(0), 0
		start := time.Now()
		w := &wire{answer: func(int, *http.Request) reply {
			passed := time.Since(start)
			if now := int64(passed / period); now != window {
				window, left = now, lefts
			}
			rest := (period - passed%period + time.Second - 1) / time.Second
			if left == 0 {
				refused++
				return answer(http.StatusTooManyRequests, "", "Retry-After", fmt.Sprint(int(rest)))
			}
			left--
			return answer(http.StatusOK, "", "RateLimit", fmt.Sprintf(`"a";r=%d;t=%d`, left, rest))
		}}
		paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: w})
		for time.Since(start) < 5*time.Minute {
			if _, err := do(paced, request(t.Context(), "GET", "")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond) //nolint:forbidigo // In a bubble.
		}
		n, _ := w.sent()
		if refused > 0 || n < 29*lefts {
			t.Errorf("%d sent, %d refused; want %d and 0", n, refused, 30*lefts)
		}
		if s := paced.Stats()[0]; s.Spent < 29 {
			t.Errorf("counted %+v", s)
		}
	})
}

// TestKeepsToTheLimit: a client with the right limit uses it up. Its answers often have a
// remaining count of 0, and the client continues.
func TestKeepsToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: func(n int, _ *http.Request) reply {
			return answer(http.StatusOK, "", "RateLimit", fmt.Sprintf(`"a";r=%d;t=60`, max(0, 600-n-30)))
		}}
		paced := transport(t, pacerOf(t, "mail", 10, time.Second), httppace.Config{Base: w})
		ctx := within(t, 10*time.Minute)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := do(paced, request(ctx, "GET", "")); err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		if n, _ := w.sent(); n != 6000 {
			t.Errorf("%d were sent in ten minutes, want 6000", n)
		}
	})
}
