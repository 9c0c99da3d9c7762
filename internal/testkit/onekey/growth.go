package onekey

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// bansGrow: 64 callers of one key fail at once, through two guards. However many of their answers could begin the ban, it begins once,
// with the length that follows the one before. An Unban makes the next one as long as the first.
func bansGrow(t *testing.T, store headgate.Store) {
	t.Helper()
	ban := guard.Ban{
		After: headgate.Limit{Count: 1, Per: 100 * time.Millisecond}, For: 100 * time.Millisecond,
		Growth: 3, Most: 500 * time.Millisecond, Forget: time.Hour,
	}
	all := guards(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10_000_000, Per: long}}, ban, 401)
	lengths := ban.Lengths()
	for round := range 2 {
		for n := range len(lengths) + 2 {
			want := lengths[min(n, len(lengths)-1)] + ban.After.Per
			await(t, "the key is not banned", func() bool { return peek(t, all[0], "a").Ban == nil })
			from := peek(t, all[1], "a")
			served := failAtOnce(t, all)
			to := peek(t, all[0], "a")
			if served == 0 || to.EarlierBans != min(n+1, len(lengths)) || from.EarlierBans != min(n, len(lengths)) {
				t.Fatalf("round %d, ban %d: %d requests were served, and the earlier bans were %d and are %d", round, n, served,
					from.EarlierBans, to.EarlierBans)
			}
			bans, _ := all[n%2].Bans(from.At.Time())
			if len(bans) == 0 {
				t.Fatalf("round %d: ban %d is not listed", round, n)
			}
			least, most := from.At.Add(want).Time(), to.At.Add(want).Time()
			if end := bans[0].Until; end.Before(least.Add(-time.Millisecond)) || end.After(most.Add(time.Millisecond)) {
				t.Errorf("round %d: ban %d ends at %v, want %v to %v", round, n, end, least, most)
			}
		}
		if _, err := all[round].Unban(t.Context(), of("a")); err != nil {
			t.Fatal(err)
		}
	}
}

// failAtOnce makes a request of each caller, whose answers are 401, and reports how many of them were served.
func failAtOnce(t *testing.T, all [2]*guard.Guard) int64 {
	t.Helper()
	var served atomic.Int64
	var wg, decided sync.WaitGroup
	decided.Add(callers)
	for i := range callers {
		wg.Go(func() {
			ticket := &guard.Ticket{Answer: new(guard.Answer)}
			err := all[i%len(all)].Admit(t.Context(), &headgate.Request{Header: client("a")}, ticket)
			decided.Done()
			if err != nil {
				t.Errorf("a decision: %v", err)
				return
			}
			decided.Wait() // The answers come together.
			if ticket.Answer.Verdict == headgate.Allow {
				served.Add(1)
				ticket.Forward()
			}
			ticket.Done(guard.Outcome{Status: 401})
		})
	}
	wg.Wait()
	return served.Load()
}
