package guard_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// bansAnswers returns the rule "a", which bans a client after n answers of 401 or 403 in a minute, for an hour.
func bansAnswers(t *testing.T, n int64, limits ...headgate.Limit) guard.Rule {
	t.Helper()
	r := byClient(t, "a", "/a", limits...)
	r.Count, r.Ban = []int{401, 403}, guard.Ban{After: perMinute(n), For: time.Hour}
	return r
}

// try sends a request that the service answers with a status, and reports whether it reached the service.
func try(t *testing.T, g *guard.Guard, client string, status int) (served bool) {
	t.Helper()
	ticket := entered(t, g, client)
	served = ticket.Answer.Verdict == headgate.Allow
	if served {
		ticket.Forward()
	}
	ticket.Done(guard.Outcome{Status: status})
	return served
}

// TestBanByAnswers follows one client: wrong passwords begin a ban, which is listed at once, and an operator lifts it. Other
// answers do not count, and no answer does not either.
func TestBanByAnswers(t *testing.T) {
	for _, n := range []int64{1, 2, 5} {
		g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{bansAnswers(t, n)}})
		for range 2 * n {
			for _, status := range []int{200, 500, 0} {
				if !try(t, g, "x", status) {
					t.Fatalf("after %d: a request is refused after an answer of %d", n, status)
				}
			}
		}
		for i := range n {
			if bans, _ := g.Bans(clock.Now().Time()); len(bans) > 0 || !try(t, g, "x", 401+2*int(i%2)) {
				t.Fatalf("after %d: bans are %v before the answer %d", n, bans, i+1)
			}
		}
		bans, _ := g.Bans(clock.Now().Time())
		if len(bans) != 1 || bans[0].Key != `a header:X-Client-Id="x"` || bans[0].Until.Sub(clock.Now().Time()) != time.Hour+time.Minute {
			t.Fatalf("after %d: bans are %+v", n, bans)
		}
		ticket := entered(t, g, "x")
		wantReason(t, ticket, headgate.Deny, headgate.Banned)
		if after := ticket.Answer.RetryAfter(); after != time.Hour+time.Minute {
			t.Errorf("after %d: the ban lasts %v", n, after)
		}
		ticket.Done(guard.Outcome{End: guard.Refused})
		if !try(t, g, "y", 401) {
			t.Errorf("after %d: another client is banned", n)
		}
		if lifted, err := g.Lift(t.Context(), bans[0].ID); !lifted || err != nil || !try(t, g, "x", 200) {
			t.Errorf("after %d: the lifted client is refused: %v", n, err)
		}
	}
}

// TestBanByAnswersIsItsTwin compares two instances of one store with a slow definition, over random requests, answers and pauses.
func TestBanByAnswersIsItsTwin(t *testing.T) {
	type twin struct {
		began headgate.Instant
		n     int64
	}
	const seeds, steps = 30, 400
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.Int64N(4)
		c := guard.Config{Rules: []guard.Rule{bansAnswers(t, n)}}
		first, clock := newGuard(t, c)
		c.Store = first.Store()
		second, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		twins := map[string]*twin{"x": {}, "y": {}}
		for step := range steps {
			clock.Advance(time.Duration(random.Int64N(int64(40 * time.Second))))
			if random.IntN(30) == 0 {
				clock.Advance(time.Hour)
			}
			client, status := []string{"x", "y"}[random.IntN(2)], []int{200, 401, 403}[random.IntN(3)]
			w, now := twins[client], clock.Now()
			end := w.began.Add(time.Minute)
			if w.n >= n {
				end = end.Add(time.Hour)
			}
			if w.n > 0 && now >= end {
				w.n = 0
			}
			want := w.n < n
			if want && status != 200 {
				if w.n++; w.n == 1 {
					w.began = now
				}
			}
			if got := try(t, []*guard.Guard{first, second}[random.IntN(2)], client, status); got != want {
				t.Fatalf("seed %d, step %d: served is %v, want %v after %d of %d answers", seed, step, got, want, w.n, n)
			}
		}
	}
}

// TestBanByAnswersAtOnce: 64 callers of one client try at once, through two instances of one store. Without a limit, those that were
// in flight with the answer that begins the ban are served. A limit of as many units bounds them: no further password is tried.
func TestBanByAnswersAtOnce(t *testing.T) {
	const callers, after = 64, 5
	for name, limits := range map[string][]headgate.Limit{"alone": nil, "with a limit": {perMinute(after)}} {
		c := guard.Config{Rules: []guard.Rule{bansAnswers(t, after, limits...)}}
		first, _ := newGuard(t, c)
		c.Store = first.Store()
		second, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		var served atomic.Int64
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for range 20 {
					if try(t, []*guard.Guard{first, second}[i%2], "x", 401) {
						served.Add(1)
					}
				}
			})
		}
		all.Wait()
		most := int64(after + callers - 1)
		if limits != nil {
			most = after
		}
		if n := served.Load(); n < after || n > most {
			t.Errorf("%s: %d wrong passwords were tried, want %d to %d", name, n, after, most)
		}
		wantReason(t, entered(t, second, "x"), headgate.Deny, headgate.Banned)
	}
}
