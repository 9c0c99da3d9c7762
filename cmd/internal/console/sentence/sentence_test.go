package sentence

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

func TestOf(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	five := now.Add(-5 * time.Minute)
	search := admin.LiveRule{Name: "search", Kind: "rule", Refused: 25.9, Since: &five}
	share := admin.LiveRule{Name: "fair_share", Kind: "fair_share", Refused: 60}
	store := admin.Attention{Level: admin.LevelFault, About: "store", Name: "10.0.0.1:6379"}
	for want, c := range map[string]struct {
		live  admin.Live
		rules []admin.LiveRule
	}{
		"No second has been measured yet.": {},
		"No requests.":                     {live: admin.Live{Window: 5}},
		"All served: 194 requests/s.":      {live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 194}}},
		"All served: 194 requests/s. Rules in shadow would refuse 3/s.": {
			live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 194, WouldRefuse: 3}},
		},
		"Headgate refuses 26 % of 194 requests/s: rule search refuses 25.9/s, since 5 min.": {
			live:  admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 194, Refused: 50}},
			rules: []admin.LiveRule{{Name: "a", Refused: 1}, search, {Name: "b", WouldRefuse: 90}},
		},
		"Headgate refuses 46 % of 194 requests/s: fair share refuses 60/s.": {
			live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 194, Refused: 90}}, rules: []admin.LiveRule{search, share},
		},
		"The service fails 12 % of 100 requests/s.": {live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 100, ServiceFailed: 12}}},
		"The service fails 12 % of 100 requests/s. Headgate refuses 5 % of 100 requests/s.": {
			live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 100, ServiceFailed: 12, Refused: 5}},
		},
		"The store server 10.0.0.1:6379 is not used: fallbacks decide. All served: 1 requests/s.": {
			live: admin.Live{Window: 5, Totals: admin.LiveTotals{Requests: 1}, Attention: []admin.Attention{{About: "rule"}, store, store}},
		},
		"The service answers nothing. No requests.": {live: admin.Live{Window: 5, Throttle: &admin.LiveThrottle{Hung: true}}},
	} {
		c.live.Now = now
		if got := Of(&c.live, c.rules); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for part, want := range map[float64]string{
		0: "0 %", 0.0001: "under 0.1 %", 0.004: "0.4 %", 0.05: "5 %", 0.0994: "9.9 %", 0.0996: "10 %", 0.256: "26 %", 0.999: "99 %", 1: "100 %",
	} {
		if got := Percent(part); got != want {
			t.Errorf("the part %v is %q, want %q", part, got, want)
		}
	}
	for n, want := range map[float64]string{
		0: "0", 0.01: "under 0.1", 0.3: "0.3", 25.94: "25.9", 99.96: "100", 194.4: "194", 12000: "12,000", 1234567: "1,234,567",
	} {
		if got := Rate(n); got != want {
			t.Errorf("%v in a second is %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "1 s", 40 * time.Second: "40 s", 99 * time.Second: "99 s", 5 * time.Minute: "5 min", 3 * time.Hour: "3 h", 50 * time.Hour: "2 days",
	} {
		if got := Since(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
