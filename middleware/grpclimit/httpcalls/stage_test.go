// Package httpcalls_test checks that httplimit refuses gRPC calls with the status of grpclimit.
package httpcalls_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// scripted is a store that returns the same decision for everything.
type scripted struct {
	headgate.Store

	decision headgate.Decision
	err      error
}

func (s *scripted) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (s *scripted) Release(headgate.PolicyID) {}

func (s *scripted) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = s.decision
	}
	return s.err
}

func allowed() *scripted {
	return &scripted{decision: headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 99, ResetAfter: time.Second}}
}

func denied(reason headgate.Reason, retry time.Duration) *scripted {
	return &scripted{decision: headgate.Decision{Verdict: headgate.Deny, Reason: reason, Limit: 100, RetryAfter: retry}}
}

// product returns the rule of the tests in this package.
func product(t *testing.T, change ...func(*guard.Rule)) guard.Rule {
	t.Helper()
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	r := guard.Rule{
		Rule:     rule.Rule{Name: "product", Match: rule.Match{Path: "/v1/product"}, Key: []rule.Part{part}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
	}
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

// stage is a service behind the middleware.
type stage struct {
	request *http.Request // request is the one that reached the service.
	handler http.Handler
}

func newStage(t *testing.T, store headgate.Store, rules ...guard.Rule) *stage {
	t.Helper()
	return stageBehind(newGuard(t, store, rules...))
}

func stageBehind(g *guard.Guard) *stage {
	s := new(stage)
	s.handler = httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.request = r
		w.WriteHeader(http.StatusTeapot)
	}))
	return s
}

func (s *stage) serve(r *http.Request) *httptest.ResponseRecorder {
	s.request = nil
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}
