package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// counted is an upstream that counts its requests.
type counted struct{ n atomic.Int64 }

func (c *counted) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.n.Add(1)
	w.WriteHeader(http.StatusOK)
}

// reconfigured is an instance with settings of fair share that a test changes.
type reconfigured struct {
	*instance

	url string
}

func (r *reconfigured) text(settings string) []byte {
	return []byte(fmt.Sprintf(fmt.Sprintf(fairShareConfiguration, settings), r.url) + adminAnywhere)
}

func startReconfigured(t *testing.T, settings string, upstream http.Handler) *reconfigured {
	t.Helper()
	behind := httptest.NewServer(upstream)
	t.Cleanup(behind.Close)
	r := &reconfigured{url: behind.URL}
	r.instance = launch(t, file(t, string(r.text(settings))))
	return r
}

// becomes reloads by SIGHUP.
func (r *reconfigured) becomes(t *testing.T, settings string) {
	t.Helper()
	replace(t, r.path, r.text(settings))
	r.hangup(t)
	if metric(t, r.instance, "headgate_config_last_reload_successful") != 1 {
		t.Fatalf("the reload failed:\n%s", r.instance.text())
	}
}

// send sends requests of a client and expects a status.
func (r *reconfigured) send(t *testing.T, client string, times, want int) {
	t.Helper()
	for n := range times {
		if resp, _ := get(t, "http://"+r.Proxy, "X-Client-Id", client); resp.StatusCode != want {
			t.Errorf("%s's request %d is answered %d, want %d", client, n+1, resp.StatusCode, want)
		}
	}
}

// has expects the counts of a client in the running cycle, and gives the cycle's number.
func (r *reconfigured) has(t *testing.T, client string, admitted, refused int64) uint64 {
	t.Helper()
	s := ctlShares(t, r.instance)
	if row := s.row(client); row.Admitted != admitted || row.Refused != refused || row.Seen != admitted+refused {
		t.Errorf("%s has %+v, want %d admitted and %d refused", client, row, admitted, refused)
	}
	return s.Cycle
}

// TestShadowShares: in mode shadow, requests are counted as in enforce, and none is refused.
// Reloads by SIGHUP and by a changed file switch to enforce and back, and keep all clients.
func TestShadowShares(t *testing.T) {
	t.Parallel()
	upstream := &counted{}
	r := startReconfigured(t, inOneCycle+", mode: shadow", upstream)
	farFromItsEnd(t, r.instance)
	r.send(t, "A", 5, 200)
	r.send(t, "", 1, 200)
	if n := upstream.n.Load(); n != 6 {
		t.Errorf("%d requests reached the service, want 6", n)
	}
	cycle := r.has(t, "A", 2, 3)
	for series, want := range map[string]float64{
		"headgate_share_shadow":                           1,
		`headgate_share_refused_units_total{client="A"}`:  3,
		`headgate_share_admitted_units_total{client="A"}`: 2,
		"headgate_share_anonymous_total":                  1,
	} {
		if got := metric(t, r.instance, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if n := decisions(t, r.instance, "fair_share", "shadow", "deny", "over_share"); n != 3 {
		t.Errorf("%v decisions would have refused, want 3", n)
	}
	if _, table, _ := call(t, "ctl", "shares", "--admin", r.Admin); !strings.Contains(table, "shadow (nothing is refused)") {
		t.Errorf("the table does not tell of shadow:\n%s", table)
	}

	r.becomes(t, inOneCycle)
	r.send(t, "A", 1, 429)
	r.send(t, "B", 1, 200)
	r.send(t, "", 1, 429)
	if now := r.has(t, "A", 2, 4); now != cycle || metric(t, r.instance, "headgate_share_shadow") != 0 {
		t.Errorf("cycle %d became %d", cycle, now)
	}
	// This is the text of the start. The follower has seen it last, and has not seen the texts in
	// between.
	replace(t, r.path, r.text(inOneCycle+", mode: shadow"))
	eventually(t, "shadow by a changed file", func() bool { return metric(t, r.instance, "headgate_share_shadow") == 1 })
	r.send(t, "A", 1, 200)
	if now := r.has(t, "A", 2, 5); now != cycle {
		t.Errorf("cycle %d became %d", cycle, now)
	}
	r.has(t, "B", 1, 0)
	if n := metric(t, r.instance, "headgate_share_anonymous_total"); n != 2 {
		t.Errorf("%v anonymous requests are counted, want 2", n)
	}
}

// TestCapacityChangesInMidCycle: used units stay used, and new units are available at once.
func TestCapacityChangesInMidCycle(t *testing.T) {
	t.Parallel()
	r := startReconfigured(t, inOneCycle, page())
	farFromItsEnd(t, r.instance)
	r.send(t, "A", 2, 200)
	r.send(t, "A", 1, 429)
	r.becomes(t, strings.Replace(inOneCycle, "capacity: 4", "capacity: 10", 1))
	r.send(t, "A", 3, 200) // The client has used two of five.
	r.send(t, "A", 1, 429)
	r.has(t, "A", 5, 2)
	r.becomes(t, strings.Replace(inOneCycle, "capacity: 4", "capacity: 6", 1))
	r.send(t, "A", 1, 429)
	r.send(t, "B", 2, 200) // Five of six are used. B is new and has a weight: its default share of three is its own.
	r.becomes(t, strings.Replace(inOneCycle, "capacity: 4", "capacity: 2", 1))
	r.send(t, "B", 1, 429)
	r.has(t, "A", 5, 3)
	r.has(t, "B", 2, 1)
	if s := ctlShares(t, r.instance); s.Capacity != 2 || s.Admitted != 7 {
		t.Errorf("%d of %d are used, want 7 of 2", s.Admitted, s.Capacity)
	}
}

// TestCycleChanges: with cycles of another length, the numbers of the cycles continue, and
// clients stay.
func TestCycleChanges(t *testing.T) {
	t.Parallel()
	r := startReconfigured(t, inOneCycle, page())
	farFromItsEnd(t, r.instance)
	r.send(t, "A", 2, 200)
	cycle := r.has(t, "A", 2, 0)
	r.becomes(t, strings.Replace(inOneCycle, "cycle: 1h", "cycle: 100ms", 1))
	eventually(t, "five short cycles", func() bool { return ctlShares(t, r.instance).Cycle >= cycle+5 })
	eventually(t, "two requests in a short cycle", func() bool {
		return burst(t, r.instance, map[string]int64{"A": 2, "B": 2}) != nil && ctlShares(t, r.instance).Admitted == 4
	})
	r.becomes(t, inOneCycle)
	later := ctlShares(t, r.instance)
	if later.Cycle < cycle+5 || len(later.Clients) != 2 {
		t.Errorf("cycle %d, then %+v", cycle, later)
	}
}
