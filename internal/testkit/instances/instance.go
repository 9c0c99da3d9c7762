package instances

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/rule"
)

// count is the limit of a month: more units than a test takes.
const count = 1 << 30

// customers gives the customers of a test: enough to use several nodes of a cluster.
func customers(prefix string) []string {
	return []string{prefix + "-a", prefix + "-b", prefix + "-c", prefix + "-d"}
}

// monthsBeginAt gives settings with a month that begins at a time in whole seconds.
func monthsBeginAt(at time.Time) calendar.Settings {
	const day = 24 * 60 * 60
	east := int((day - at.Unix()%day) % day)
	if east > day/2 {
		east -= day
	}
	zone := time.FixedZone("test", east)
	return calendar.Settings{Zone: zone, WeekStarts: time.Monday, MonthStarts: at.In(zone).Day()}
}

// newInstance makes a guard whose clock is ahead of the machine's by skew. It limits each customer by the month.
func newInstance(t *testing.T, store headgate.Store, months calendar.Settings, skew time.Duration) *guard.Guard {
	t.Helper()
	part, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Store: store, Clock: func() headgate.Instant { return headgate.Instant(time.Now().Add(skew).UnixNano()) },
		Rules: []guard.Rule{{
			Rule: rule.Rule{Name: "quota", Key: []rule.Part{part}}, Calendar: months,
			Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Calendar: headgate.Month}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// take decides one unit of a customer. The error is that of the store.
func take(t *testing.T, g *guard.Guard, customer string) (headgate.Decision, error) {
	t.Helper()
	r := headgate.Request{Method: "GET", Path: "/" + customer}
	var a guard.Answer
	if err := g.Decide(t.Context(), &r, &a); err != nil {
		t.Fatal(err)
	}
	return a.Results[0].Decision, a.StoreError
}
