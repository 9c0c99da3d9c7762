package open

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// TestOutsideCountsOnce: the clock of a real store is 100 days ahead of this process. Each limit without a calendar is decided and counts
// each request of a call once, beside requests whose monthly limit the store cannot decide. Units that are taken ahead count once, too.
func TestOutsideCountsOnce(t *testing.T) {
	const rules = "store_timeout: 10s\nrules:\n" +
		"- {name: day, match: {path: /plain}, key: [all], algorithm: fixed_window, limits: [1000/1d]%s}\n" +
		"- {name: both-day, match: {path: /both}, key: [all], algorithm: fixed_window, limits: [1000/1d]}\n" +
		"- {name: both-second, match: {path: /both}, key: [all], algorithm: fixed_window, limits: [100/1s]}\n" +
		"- {name: month, match: {path: /both}, key: [all], algorithm: fixed_window, limits: [1000/month], fallback: allow}\n"
	const ahead = ", prefetch: {hold: 1s, batch: 10}"
	first, second := testredis.Start(t), testredis.Start(t)
	for name, text := range map[string]string{
		"memory":         fmt.Sprintf(rules, ""),
		"memcached":      "store: memcached://" + testmemcached.Start(t).Addr + "\n" + fmt.Sprintf(rules, ""),
		"redis, ahead":   "store: redis://" + testredis.Start(t).Addr + "\n" + fmt.Sprintf(rules, ahead),
		"split":          "store: redis://" + first.Addr + "\nstore_per_second: redis://" + second.Addr + "\n" + fmt.Sprintf(rules, ""),
		"split, ahead":   "store: redis://" + first.Addr + "/1\nstore_per_second: redis://" + second.Addr + "/1\n" + fmt.Sprintf(rules, ahead),
		"redis, nothing": "store: redis://" + testredis.Start(t).Addr + "\n" + fmt.Sprintf(rules, ""),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("f", []byte("version: 1\n"+text))
			if err != nil {
				t.Fatal(err)
			}
			store, _ := opened(t, c, Options{})
			described, err := GuardConfig(c, store)
			if err != nil {
				t.Fatal(err)
			}
			described.Clock = func() headgate.Instant { return headgate.Instant(time.Now().AddDate(0, 0, -100).UnixNano()) }
			g, err := guard.New(described)
			if err != nil {
				t.Fatal(err)
			}
			const rounds = 5
			paths := []string{"/plain", "/both", "/plain", "/both"}
			requests, answers := make([]headgate.Request, len(paths)), make([]guard.Answer, len(paths))
			for range rounds {
				for i, path := range paths {
					requests[i] = headgate.Request{Method: "GET", Path: path}
				}
				g.DecideAll(t.Context(), requests, answers)
				for i := range answers {
					a := &answers[i]
					if a.Verdict != headgate.Allow || a.Results[0].Fallback || (paths[i] == "/both") != (a.StoreError != nil) {
						t.Fatalf("%s: %s, %+v, %v", paths[i], a.Verdict, a.Results[0].Decision, a.StoreError)
					}
				}
			}
			for i, want := range []int64{1000 - 2*rounds, 1000 - 2*rounds} {
				if got := answers[2+i].Results[0].Decision.Remaining; got != want {
					t.Errorf("%s has %d left after %d requests, want %d", paths[i], got, 2*rounds, want)
				}
			}
		})
	}
}
