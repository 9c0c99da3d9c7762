package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/console/history/ring"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// stage is a history over a report, with shares and a store that a test writes.
type stage struct {
	*Component

	report  *report.Report
	guard   guard.Config
	observe guard.Observer
	config  *config.Config
	shares  fairshare.Shares
	shared  bool
	store   report.Shared
	now     time.Time

	waiting  []string
	failures []admin.ReloadFailure
}

// configuration stands for the instance, which does not stop.
type configuration struct{ component.Configuration }

func (configuration) Stopping() bool { return false }

// start is the time of the first second of a test.
const start = 1_700_000_000

func newStage(tb testing.TB, text string, series int) *stage {
	tb.Helper()
	c, err := config.Parse("test.yaml", []byte("version: 1\n"+text))
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := &stage{report: report.New(report.Config{Log: log, Keys: report.KeysHash, KeysSecret: []byte("secret")}), config: c, now: time.Unix(start, 0)}
	tb.Cleanup(s.report.Close)
	s.rules(c.Rules)
	s.Component = New(Options{
		Host: component.NewHost(log, true, nil), Config: func() *config.Config { return s.config }, Series: series,
		Instance: configuration{}, Components: func() []component.Component { return nil }, Waiting: func() []string { return s.waiting }, Failures: func() []admin.ReloadFailure { return s.failures },
		Version: "v1", Started: time.Unix(start-1, 0),
		Sources: Sources{
			Report: s.report, Shares: func() (fairshare.Shares, bool) { return s.shares, s.shared },
			Throttle: func() *throttler.Stage { return nil }, Store: func() report.Shared { return s.store },
		},
	})
	s.config.Instance = "hg-1"
	return s
}

// rules puts rules in force.
func (s *stage) rules(all []guard.Rule) {
	s.guard.Rules = all
	s.observe = s.report.FollowConfig(&s.guard)
}

// second counts decisions of rules, then the answers, and ends a second.
func (s *stage) second(decide func()) {
	if decide != nil {
		decide()
	}
	s.now = s.now.Add(time.Second)
	s.tick(s.now)
}

// decided counts n decisions of the rule with a number.
func (s *stage) decided(number, n int, v headgate.Verdict, reason headgate.Reason) {
	r := guard.Result{Rule: &s.guard.Rules[number], Number: number, Decision: headgate.Decision{Verdict: v, Reason: reason}}
	a := &guard.Answer{Results: []guard.Result{r}, Verdict: v}
	for range n {
		s.observe.Observe(nil, a)
	}
}

// allow counts n requests that a rule and the service allow.
func (s *stage) allow(number, n int) {
	s.decided(number, n, headgate.Allow, headgate.WithinLimit)
	for range n {
		s.report.Traffic.Answered(report.OriginService, 200)
	}
}

// deny counts n requests that a rule refuses, or would refuse in shadow.
func (s *stage) deny(number, n int) {
	s.decided(number, n, headgate.Deny, headgate.OverLimit)
	for range n {
		if s.guard.Rules[number].Mode == guard.Shadow {
			s.report.Traffic.Answered(report.OriginService, 200)
		} else {
			s.report.Traffic.Answered(report.OriginHeadgate, 429)
		}
	}
}

// get calls the admin listener as a reader.
func (s *stage) get(t *testing.T, path string) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	for _, c := range s.Calls() {
		mux.HandleFunc(c.Pattern, c.Handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

// steps is the history of one series as text.
func (s *stage) steps(t *testing.T, name string, tier string) string {
	t.Helper()
	code, text := s.get(t, "/api/v1/history?"+url.Values{"series": {name}, "tier": {tier}}.Encode())
	h := new(admin.History)
	if err := json.Unmarshal([]byte(text), h); err != nil || code != http.StatusOK {
		t.Fatalf("history: %d, %v: %s", code, err, text)
	}
	var all []string
	for _, v := range h.Series[name] {
		if v == nil {
			all = append(all, "null")
		} else {
			all = append(all, fmt.Sprint(*v))
		}
	}
	return strings.Join(all, " ")
}

const twoRules = `rules:
- {name: search, key: [header:X-Client-Id], limits: [20/s]}
- {name: crawl, key: [ip], limits: [5/s], mode: shadow}
`

// TestGoldenAnswers compares both answers with testdata, byte by byte after indenting.
func TestGoldenAnswers(t *testing.T) {
	s := newStage(t, twoRules+"fair_share: {client: header:X-Client-Id, capacity: 40}\n", 100)
	s.shared, s.shares = true, fairshare.Shares{Capacity: 40, Length: time.Second, Clients: []fairshare.Share{{Client: "acme"}, {Client: "zeta"}}}
	s.store.Nodes = []report.Node{{Name: "10.0.0.1:6379"}}
	s.second(nil)
	for range 20 {
		s.second(func() {
			s.allow(0, 9)
			s.deny(0, 3)
			s.deny(1, 2)
			acme := &s.shares.Clients[0]
			acme.Demand, acme.Size, acme.Default = 30, 25, 20
			s.report.Traffic.ServiceTime.Observe(3 * time.Millisecond)
			s.report.Traffic.RequestTime.Observe(time.Hour)
			acme.AdmittedCounter, acme.RefusedTotal = acme.AdmittedCounter+20, acme.RefusedTotal+5
			s.store.Nodes[0].Calls += 12
		})
	}
	_, text := s.get(t, "/api/v1/live")
	golden(t, "live.json", text)
	query := url.Values{"series": {
		"requests", "rule.search.refused", "rule.crawl.would_refuse", "rule.unknown.refused",
		"client.header:X-Client-Id=" + hashed(s, "acme") + ".admitted", "client.acme.admitted",
	}, "tier": {"10s"}}
	_, text = s.get(t, "/api/v1/history?"+query.Encode())
	golden(t, "history.json", text)
}

// hashed is how a reader sees a client.
func hashed(s *stage, client string) string {
	text := string(s.report.KeyNames().AppendClient(nil, s.config.FairShare.Client, client))
	return strings.TrimPrefix(text, "header:X-Client-Id=")
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	var got bytes.Buffer
	text = regexp.MustCompile(`"config":"[0-9a-f]{16}"`).ReplaceAllString(text, `"config":"DIGEST"`) // Each new setting changes the digest.
	if err := json.Indent(&got, []byte(text), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	file := filepath.Join("testdata", name)
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs; got\n%s", name, got.Bytes())
	}
}

// TestParameters: an unknown or wrong parameter is an error with what to write.
func TestParameters(t *testing.T) {
	s := newStage(t, twoRules, 100)
	many := strings.Repeat("series=a&", 101)
	for query, want := range map[string]string{
		"live?sort=odd":                              "sort must be",
		"live?limit=0":                               "limit must be",
		"live?limit=201":                             "limit must be",
		"live?local=2":                               "local must be",
		"live?odd=1":                                 "does not know",
		"live?sort=":                                 "is empty",
		"history":                                    "name 1 to 100 series",
		"history?series=":                            "is empty",
		"history?series=a&tier=2s":                   "tier must be",
		"history?series=a&tier=1s&tier=5m":           "more than once",
		"history?series=a&since=x":                   "since must be",
		"history?series=a&since=-1":                  "since must be",
		"history?series=a&odd=1":                     "does not know",
		"history?" + many + "tier=1s":                "name 1 to 100 series",
		"history?series=" + strings.Repeat("a", 257): "more than 256 bytes",
	} {
		if code, text := s.get(t, "/api/v1/"+query); code != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.60s: %d %s, want 400 with %q", query, code, text, want)
		}
	}
	for _, query := range []string{"live?sort=name&limit=1&local=1", "history?series=a&series=b&tier=5m&since=5&local=1"} {
		if code, text := s.get(t, "/api/v1/"+query); code != http.StatusOK {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	if code, text := newStage(t, twoRules, 0).get(t, "/api/v1/history?series=requests"); code != http.StatusNotFound ||
		!strings.Contains(text, "admin.history.series") {
		t.Errorf("without a history: %d %s", code, text)
	}
}

// TestEpisodes: a run of refusals ends after 15 seconds without one. In shadow, it is one of refusals that would be.
func TestEpisodes(t *testing.T) {
	s := newStage(t, twoRules, 100)
	for range 3 {
		s.second(func() { s.allow(0, 5) })
	}
	began := s.now
	for second := range 60 {
		s.second(func() {
			if second%15 == 0 {
				s.deny(0, 1)
				s.deny(1, 1)
			}
		})
	}
	for _, r := range s.Component.Live("name", 10, true).Rules {
		if r.Since == nil || !r.Since.Equal(began) || !r.Last.Equal(began.Add(46*time.Second)) {
			t.Errorf("%s refuses since %v, last %v; want since %v", r.Name, r.Since, r.Last, began)
		}
	}
	s.second(nil)
	s.second(nil)
	if r := s.Component.Live("name", 10, true).Rules[1]; r.Since != nil || r.Last != nil {
		t.Errorf("the run goes on after 16 seconds without a refusal: %v, %v", r.Since, r.Last)
	}
	began = s.now
	s.second(func() { s.deny(0, 1) })
	if r := s.Component.Live("refused", 1, true).Rules[0]; r.Name != "search" || r.Since == nil || !r.Since.Equal(began) {
		t.Errorf("a new run of %s began at %v, want %v", r.Name, r.Since, began)
	}
}

// TestReloads: reloads keep counters, and neither a rule that comes back nor one that was off shows old counts as new ones.
func TestReloads(t *testing.T) {
	s := newStage(t, twoRules, 100)
	both := s.guard.Rules
	s.second(func() { s.deny(0, 50); s.allow(0, 1000) })
	s.rules(append([]guard.Rule{{Rule: rule.Rule{Name: "new"}}}, both...))
	s.second(func() { s.deny(1, 7); s.deny(0, 4) })
	off := append([]guard.Rule(nil), both...)
	off[0].Mode = guard.Off
	s.rules(off)
	s.second(nil)
	s.rules(both)
	s.second(func() { s.deny(0, 3) })
	s.rules(both[1:]) // search is removed,
	s.second(nil)
	s.rules(both) // and comes back with counters of 0.
	s.second(func() { s.deny(0, 2) })
	s.rules(both[1:])
	s.rules(both) // The sampler sees only a counter that went back.
	s.second(func() { s.deny(0, 1) })
	if got := s.steps(t, "rule.search.refused", "1s"); got != "50 7 0 3 0 2 1" {
		t.Errorf("search refused %s", got)
	}
	if got := s.steps(t, "rule.new.refused", "1s"); got != "0 4 0 0 0 0 0" {
		t.Errorf("new refused %s", got)
	}
	if got := s.steps(t, "refused", "1s"); got != "50 11 0 3 0 2 1" {
		t.Errorf("all refused %s", got)
	}
}

// TestTrials: a trial has a line and series, and is in no sum.
func TestTrials(t *testing.T) {
	s := newStage(t, twoRules, 100)
	s.guard.Rules[1].TrialOf = "search"
	s.rules(s.guard.Rules)
	s.second(func() { s.allow(0, 5); s.decided(1, 3, headgate.Deny, headgate.OverLimit) })
	l := s.Component.Live("name", 10, true)
	if r := l.Rules[0]; r.Kind != "trial" || r.TrialOf != "search" || r.WouldRefuse != 3 || l.Totals.WouldRefuse != 0 || l.AttentionTotal != 0 {
		t.Errorf("a trial is shown as %+v, with %v that would be refused in all, and %d that want attention", r, l.Totals.WouldRefuse, l.AttentionTotal)
	}
	if got := s.steps(t, "rule.crawl.would_refuse", "1s"); got != "3" {
		t.Errorf("the trial has the steps %s", got)
	}
}

// TestCounterThatSteps: no counter that goes back gives a negative or huge count.
func TestCounterThatSteps(t *testing.T) {
	last := uint64(0)
	for _, step := range []struct{ now, want uint64 }{{0, 0}, {5, 5}, {5, 0}, {9, 4}, {2, 2}, {2, 0}, {1 << 63, 1<<63 - 2}, {3, 3}} {
		if got := since(step.now, &last); got != step.want {
			t.Errorf("a counter at %d has counted %d, want %d", step.now, got, step.want)
		}
	}
}

// TestSharesComeBack: fair share that was off for a time does not count what its clients did before.
func TestSharesComeBack(t *testing.T) {
	s := newStage(t, "rules: []\nfair_share: {client: header:X-Client-Id, capacity: 40}\n", 100)
	set := func(name string, refused uint64) {
		s.shares.Clients = []fairshare.Share{{Client: name, RefusedTotal: refused}}
	}
	s.second(nil)
	for _, step := range []struct {
		on      bool
		name    string
		refused uint64
	}{{true, "a", 0}, {true, "a", 4}, {false, "a", 0}, {true, "a", 1000}, {true, "a", 1001}, {true, "b", 5}, {true, "a", 2}} {
		s.shared = step.on
		set(step.name, step.refused)
		s.second(nil)
	}
	h := s.History([]string{"client.a.refused", "client.b.refused"}, ring.Second, 0, true)
	var a, b []float64
	for i := range h.Series["client.a.refused"] {
		a, b = append(a, *h.Series["client.a.refused"][i]), append(b, *h.Series["client.b.refused"][i])
	}
	if got := fmt.Sprint(a, b); got != "[0 0 4 0 0 1 0 2] [0 0 0 0 0 0 5 0]" {
		t.Errorf("the clients were refused %s", got)
	}
}

// TestWindow: rates are means over the seconds that the answer states.
func TestWindow(t *testing.T) {
	s := newStage(t, twoRules, 0)
	if l := s.Component.Live("refused", 1, true); l.Window != 0 || l.Sequence != 0 {
		t.Errorf("before the first second, the window has %d seconds", l.Window)
	}
	for second := range 100 {
		s.second(func() { s.deny(0, 10+second%3) })
		l := s.Component.Live("refused", 1, true)
		counted := 0
		for back := range min(l.Window, second+1) {
			counted += 10 + (second-back)%3
		}
		if l.Window < min(second+1, 11) || l.Window > 15 || l.Sequence != uint64(second+1) {
			t.Fatalf("after %d seconds the window has %d", second+1, l.Window)
		}
		if got := l.Rules[0].Refused; got != per(uint64(counted), int64(l.Window)) || l.Totals.Refused != got {
			t.Fatalf("after %d seconds the rate is %v and %v, want %d in %d seconds", second+1, got, l.Totals.Refused, counted, l.Window)
		}
	}
	s.now = s.now.Add(time.Hour) // The process was stopped.
	s.second(func() { s.deny(0, 6) })
	if l := s.Component.Live("refused", 1, true); l.Window != 1 || l.Rules[0].Refused != 6 {
		t.Errorf("after an hour, %v a second in %d seconds", l.Rules[0].Refused, l.Window)
	}
	s.now = s.now.Add(-time.Hour)
	s.second(func() { s.deny(0, 5) })
	if l := s.Component.Live("refused", 1, true); l.Window != 1 || l.Rules[0].Refused != 5 {
		t.Errorf("after a step back, %v a second in %d seconds", l.Rules[0].Refused, l.Window)
	}
}

// TestSharedAnswer: callers within a second get one answer, and readers do not get that of operators.
func TestSharedAnswer(t *testing.T) {
	s := newStage(t, twoRules, 100)
	s.second(func() { s.allow(0, 1) })
	first, _ := s.answer(query{"refused", 50, false})
	again, _ := s.answer(query{"refused", 50, false})
	plain, _ := s.answer(query{"refused", 50, true})
	if &first[0] != &again[0] || &first[0] == &plain[0] {
		t.Error("the answer was made again, or shared with another kind of caller")
	}
	s.second(nil)
	if next, _ := s.answer(query{"refused", 50, false}); &next[0] == &first[0] {
		t.Error("the next second has the answer of the former")
	}
	for limit := range 100 {
		if _, _ = s.answer(query{"refused", limit + 1, false}); len(s.answers.made) > maxAnswers {
			t.Fatalf("%d answers are kept", len(s.answers.made))
		}
	}
}
