package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestCalendarsAreBounded: each reload has another time zone. The calendars that no limit has any more are removed.
func TestCalendarsAreBounded(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	by, err := rule.ParsePart("header:X-Customer")
	if err != nil {
		t.Fatal(err)
	}
	month := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: headgate.Month}}
	var g *Guard
	for i := range 300 {
		plan := Plan{
			Name: "p", Quotas: []QuotaLimits{{Quota: "calls", Limits: []QuotaLimit{{Policy: month}}}},
			Calendar: Calendar{Zone: time.FixedZone(fmt.Sprint("z", i), i), WeekStarts: time.Monday, MonthStarts: 1},
		}
		q, err := NewQuotas([]Plan{plan}, "p", nil)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Store: store, Quotas: q, Rules: []Rule{{Rule: rule.Rule{Name: "api", Key: []rule.Part{by}, Quota: "calls"}}}}
		if g == nil {
			g, err = New(c)
		} else {
			err = g.Reload(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(g.quotasInEffect().calendars); n == 0 || n > 70 {
			t.Fatalf("after %d reloads, there are %d calendars", i, n)
		}
	}
}
