package why

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestExplanationsChangeNothing makes a thousand explanations in memory, and some hundred on each shared store: of new keys and clients, of
// used and of banned ones. Counters, bans, shares, metrics and top stay as they are, and no decision is reported, so nothing is logged.
func TestExplanationsChangeNothing(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"memory":    func(*testing.T) string { return "memory" },
		"redis":     func(t *testing.T) string { t.Helper(); return "redis://" + redis.Start(t).Addr },
		"memcached": func(t *testing.T) string { t.Helper(); return "memcached://" + memcached.Start(t).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 300
			if name == "memory" {
				n = 1000
			}
			changesNothing(t, store(t), n)
		})
	}
}

// counted is what an operator sees of an instance.
type counted struct {
	keys     []guard.LimitState
	bans     []guard.BanEntry
	top      report.TopKeys
	metrics  string
	shares   string
	observed int
	quota    []string
}

// observed counts the reported decisions.
type observed struct {
	guard.Observer

	n int
}

func (o *observed) Observe(req *headgate.Request, a *guard.Answer) {
	o.n++
	o.Observer.Observe(req, a)
}

func changesNothing(t *testing.T, store string, times int) {
	t.Helper()
	counts := report.New(report.Config{Log: slog.New(slog.DiscardHandler)})
	seen := new(observed)
	defer counts.Close()
	text := "store: " + store + `
store_timeout: 5s
fair_share: {client: "header:X-Client-Id", capacity: 100000, cycle: 1h}
plans: {free: {quotas: {api: [{limit: 30/365d}]}}}
default_plan: free
rules:
  - {name: search, match: {path: /search}, key: ["header:X-Client-Id"], limits: [20/1d], ban: {after: 30/1d, for: 1d}}
  - {name: shadow, key: [ip], limits: [5/365d], algorithm: fixed_window, mode: shadow}
  - {name: count, match: {path: /search}, key: [ip], limits: [25/365d], algorithm: sliding_window, count_rejected: true}
  - {name: quota, match: {path: /search}, key: ["header:X-Client-Id"], quota: api}
`
	i := newInstance(t, text, func(c *guard.Config) {
		seen.Observer = counts.FollowConfig(c)
		c.Observer = seen
	})
	banned := guard.KeyName{Rule: "shadow", Values: []string{"192.0.2.9"}}
	if _, err := i.guard.Ban(t.Context(), banned, time.Hour, "test"); err != nil {
		t.Fatal(err)
	}
	orders := make([]*admin.ExplainOrder, 0, 4)
	for n, client := range []string{"used", "new", "over", "used"} {
		orders = append(orders, &admin.ExplainOrder{
			Request: "GET /search", Address: fmt.Sprint("192.0.2.", 7+n), Headers: admin.ExplainHeaders{"X-Client-Id": {client}},
		})
	}
	for n := range 25 {
		for _, order := range orders[:3] {
			if order.Headers["X-Client-Id"][0] == "used" && n > 9 || order.Headers["X-Client-Id"][0] == "new" {
				continue
			}
			x, err := i.decide(t, order)
			if err != nil {
				t.Fatal(err)
			}
			x.Done(guard.Refused)
		}
	}
	before := i.counted(t, counts, seen)
	verdicts := map[string]int{}
	for n := range times {
		order := *orders[n%len(orders)]
		if n%5 == 4 {
			order.Headers = admin.ExplainHeaders{"X-Client-Id": {fmt.Sprint("invented", n)}}
		}
		verdicts[i.said(t, &order).Verdict]++
	}
	after := i.counted(t, counts, seen)
	if verdicts["allow"] < times/5 || verdicts["deny"] < times/5 {
		t.Errorf("the explanations said %v", verdicts)
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the explanations changed what is counted from\n%+v\nto\n%+v", before, after)
	}
}

// counted reads the counters of all keys, and what the report has.
func (i *instance) counted(t *testing.T, counts *report.Report, seen *observed) (c counted) {
	t.Helper()
	for _, client := range []string{"used", "new", "over"} {
		c.keys = append(c.keys, i.used(t, "search", client)...)
	}
	for n := range 4 {
		for _, name := range []string{"shadow", "count"} {
			c.keys = append(c.keys, i.used(t, name, fmt.Sprint("192.0.2.", 7+n))...)
		}
	}
	usage, err := i.guard.Usage(t.Context(), "used")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		c.quota = append(c.quota, fmt.Sprint(u.Quota, u.Used))
	}
	shares, _ := i.guard.Shares()
	for _, s := range shares.Clients {
		c.shares += fmt.Sprint(s.Client, s.Seen, s.Admitted, s.Refused, "\n")
	}
	c.bans, _ = i.guard.Bans(time.Now())
	for n := range c.bans {
		c.bans[n].Until = c.bans[n].Until.Round(time.Minute)
	}
	c.top, _ = counts.TopKeys("", 100)
	c.top.Since = time.Time{}
	c.observed = seen.n
	c.metrics = metricsOf(t, counts, i.guard)
	return c
}

// used reads the units of a key.
func (i *instance) used(t *testing.T, name, value string) (all []guard.LimitState) {
	t.Helper()
	state, err := i.guard.Peek(t.Context(), guard.KeyName{Rule: name, Values: []string{value}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range state.Limits {
		l.Next, l.Full = 0, 0 // Time passes.
		all = append(all, l)
	}
	return all
}

// metricsOf gives the metrics of decisions.
func metricsOf(t *testing.T, counts *report.Report, g *guard.Guard) string {
	t.Helper()
	registry, err := prom.NewRegistry(prom.Config{Report: counts, Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	prom.Handler(registry).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "headgate_") {
			lines = append(lines, line)
		}
	}
	if len(lines) < 10 {
		t.Fatalf("there are no metrics:\n%s", w.Body)
	}
	return strings.Join(lines, "")
}

// TestExplainBounds: a call has bounds, and says which.
func TestExplainBounds(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "rules: [{name: all, key: [ip], limits: [5/s]}]\n", nil)
	many := map[string]any{}
	for n := range maxFields + 1 {
		many[fmt.Sprint("X-", n)] = "v"
	}
	long, err := json.Marshal(map[string]any{"request": "GET /", "headers": many})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"request": "GET /"}`:                                        "",
		`{"path": "/a", "headers": {"A": ["b", "c"]}}`:                "",
		`{"method": "POST", "url": "http://x/a?b=c"}`:                 "",
		`{"request": "GET /", "address": "unix"}`:                     "",
		`{"request": "GET /` + strings.Repeat("a", maxTarget) + `"}`:  "bytes",
		strings.Repeat(" ", maxOrder) + `{}`:                          "more than",
		string(long):                                                  "header fields",
		`{}`:                                                          "no path",
		`{"request": "GET /", "path": "/"}`:                           "leave out",
		`{"path": "/", "url": "/"}`:                                   "one of them",
		`{"request": "GET /", "bogus": 1}`:                            "bogus",
		`{"request": "GET /"} {}`:                                     "second value",
		`{"request": "GET /", "headers": {"A": 7}}`:                   "neither a text nor a list",
		`{"request": "GET /", "headers": {"A": "b\nC: d"}}`:           "control character",
		`{"request": "GET /", "headers": {"A b": "c"}}`:               "space",
		`{"request": "GET /", "address": "nowhere"}`:                  "not an address",
		`{"request": "GET /", "customer": "a\nb"}`:                    "line break",
		`{"request": "GET /", "length": -1}`:                          "length",
		`{"request": "GET /", "host": "a", "headers": {"Host": "b"}}`: "one of them",
		`[]`: "no request",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/explain", strings.NewReader(body))
		i.Calls()[0].Handler(w, r)
		var why admin.Why
		switch {
		case want != "" && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want)):
			t.Errorf("%.80s: %d %s, want %q", body, w.Code, w.Body, want)
		case want == "" && (w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &why) != nil || why.Verdict != headgate.Allow.String()):
			t.Errorf("%.80s: %d %s", body, w.Code, w.Body)
		}
	}
}

// TestOneExplanationAtATime: a call that waits for another one ends with its client.
func TestOneExplanationAtATime(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "rules: [{name: all, key: [ip], limits: [5/s]}]\n", nil)
	i.one <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, failure := i.Explain(ctx, &admin.ExplainOrder{Request: "GET /"}); failure == nil || failure.Status != http.StatusServiceUnavailable {
		t.Errorf("the call gives %v, want a failure", failure)
	}
}
