package report

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestSentBuckets: buckets that clients send are counted, logged and among the refused keys, and are listed after their first
// decision.
func TestSentBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logs.Text)
		r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), Keys: KeysPlain})
		defer r.Close()
		g := shop(t, r)
		listed := func() bool {
			for _, s := range r.Stages() {
				if s.Rule.Name == guard.SentName {
					return true
				}
			}
			return false
		}
		if listed() {
			t.Error("it is listed before its first decision")
		}
		var b guard.SentBatch
		b.Begin(g)
		for range 3 {
			b.Add([]byte("user\n7"), headgate.Limit{Count: 1, Per: time.Hour, Burst: 1}, 1)
		}
		b.Decide(t.Context())
		synctest.Wait()
		var allowed, denied uint64
		counted, _ := r.Stage(guard.SentName)
		for _, n := range counted.Counts {
			switch n.Verdict {
			case headgate.Allow:
				allowed += n.N
			default:
				denied += n.N
			}
		}
		if !listed() || allowed != 1 || denied != 2 {
			t.Errorf("listed: %v, allowed %d, denied %d", listed(), allowed, denied)
		}
		if lines := strings.Count(out.String(), `"rule":"(sent)"`); lines != 2 || !strings.Contains(out.String(), `user\\n7`) {
			t.Errorf("%d lines of refusals:\n%s", lines, out.String())
		}
		top, _ := r.TopKeys("", 10)
		if len(top.Keys) != 1 || top.Keys[0].Refusals != 2 || top.Keys[0].Rule != guard.SentName {
			t.Errorf("the refused keys: %+v", top)
		}
	})
}
