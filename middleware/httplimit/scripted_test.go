package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// scripted is a store that returns the same decision for everything and records its Ops.
type scripted struct {
	headgate.Store

	decision headgate.Decision
	err      error

	mu       sync.Mutex
	ops      []headgate.Op
	returned []headgate.Receipt
}

func (s *scripted) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (s *scripted) Release(headgate.PolicyID) {}

func (s *scripted) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = append(s.ops, ops...)
	for i := range ops {
		decisions[i] = s.decision
	}
	return s.err
}

func (s *scripted) Return(_ context.Context, receipts []headgate.Receipt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, receipts...)
	return nil
}

func (s *scripted) ReturnLast(ctx context.Context, receipt *headgate.Receipt) (bool, error) {
	return true, s.Return(ctx, []headgate.Receipt{*receipt})
}

func allowed() *scripted {
	return &scripted{decision: headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 99, ResetAfter: time.Second}}
}

// nearly returns a store in which a limit is nearly used up.
func nearly() *scripted {
	return &scripted{decision: headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 10, ResetAfter: time.Second}}
}

func denied(reason headgate.Reason, retry time.Duration) *scripted {
	return &scripted{decision: headgate.Decision{Verdict: headgate.Deny, Reason: reason, Limit: 100, RetryAfter: retry}}
}

// waiting returns a store that schedules a departure after d.
func waiting(d time.Duration) *scripted {
	return &scripted{decision: headgate.Decision{
		Verdict: headgate.Wait, Reason: headgate.Scheduled, RetryAfter: d, Receipt: headgate.Receipt{Nonce: 7},
	}}
}

// keyed returns a rule for a path that counts by the given key.
func keyed(t *testing.T, name, path, key string) guard.Rule {
	t.Helper()
	part, err := rule.ParsePart(key)
	if err != nil {
		t.Fatal(err)
	}
	return guard.Rule{
		Rule:     rule.Rule{Name: name, Match: rule.Match{Path: path}, Key: []rule.Part{part}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
	}
}

// product returns the rule of most tests in this package.
func product(t *testing.T, change ...func(*guard.Rule)) guard.Rule {
	t.Helper()
	r := keyed(t, "product", "/v1/product", "header:X-Client-Id")
	for _, f := range change {
		f(&r)
	}
	return r
}

func newGuard(t *testing.T, store headgate.Store, rules ...guard.Rule) *guard.Guard {
	t.Helper()
	g, err := guard.New(guard.Config{Rules: rules, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// service is the next handler. It records what reaches it.
type service struct {
	request *http.Request
	writer  http.ResponseWriter
	at      time.Time
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.request, s.writer, s.at = r, w, time.Now()
	w.WriteHeader(http.StatusTeapot)
}

// stage is a service behind the middleware.
type stage struct {
	service

	handler http.Handler
	log     bytes.Buffer
}

func newStage(t *testing.T, store headgate.Store, rules ...guard.Rule) *stage {
	t.Helper()
	s := new(stage)
	s.guard(t, httplimit.Options{}, store, rules...)
	return s
}

// guard wraps the service in the middleware.
func (s *stage) guard(t *testing.T, o httplimit.Options, store headgate.Store, rules ...guard.Rule) {
	t.Helper()
	s.guardBy(newGuard(t, store, rules...), o)
}

func (s *stage) guardBy(g *guard.Guard, o httplimit.Options) {
	o.Log = slog.New(slog.NewTextHandler(&s.log, nil))
	s.handler = httplimit.New(g, o)(&s.service)
}

func (s *stage) serve(r *http.Request) *httptest.ResponseRecorder {
	s.service = service{}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func (s *stage) get(t *testing.T, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	if header != nil {
		r.Header = header
	}
	return s.serve(r)
}

// problem is a problem document as clients decode it.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Detail   string   `json:"detail"`
	Reason   string   `json:"reason"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies"` //nolint:tagliatelle // the draft's spelling
}

// problemOf reads a problem document and checks that it agrees with the response.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("parsing the problem failed: %v: %s", err, w.Body)
	}
	if p.Status != w.Code || p.Title == "" || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("response %d %q does not agree with the problem %+v", w.Code, w.Header().Get("Content-Type"), p)
	}
	return p
}
