package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// TestMissingPart checks the answers to a request without a part of the key, in HTTP, gRPC and Connect. Each names the part, and does
// not follow the rule's redirect. The store is asked for nothing.
func TestMissingPart(t *testing.T) {
	store := allowed()
	s := new(stage)
	s.guard(t, httplimit.Options{}, store, product(t, func(r *guard.Rule) {
		r.Missing, r.Exceed = rule.MissingRefuse, guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/"}
	}, byCookie(t)))
	const text = "The request has no cookie:session, by which it is counted under the policy product: send the request with it."
	for _, c := range []struct {
		header http.Header
		status int
		grpc   string
	}{
		{http.Header{}, http.StatusBadRequest, ""},
		{http.Header{"Content-Type": {"application/grpc"}}, http.StatusOK, "3"},
		{http.Header{"Connect-Protocol-Version": {"1"}}, http.StatusBadRequest, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/product", http.NoBody)
		r.Header = c.header
		w := s.serve(r)
		h := w.Header()
		if w.Code != c.status || h.Get("Grpc-Status") != c.grpc || h.Get("Location")+h.Get("Retry-After") != "" || s.request != nil {
			t.Errorf("%v: got status %d and %v, want %d and no Location", c.header, w.Code, h, c.status)
		}
		if got := w.Body.String() + h.Get("Grpc-Message"); !strings.Contains(got, text) {
			t.Errorf("%v: got %s, want a text with %s", c.header, got, text)
		}
	}
	if p := problemOf(t, s.get(t, "/v1/product", nil)); p.Type != "about:blank" || p.Reason != "key_missing" {
		t.Errorf("got the problem %+v, want about:blank and key_missing", p)
	}
	if len(store.ops) > 0 {
		t.Errorf("the store got the ops %v, want none", store.ops)
	}
}

// byCookie counts a rule by the cookie session.
func byCookie(t *testing.T) func(r *guard.Rule) {
	t.Helper()
	part, err := rule.ParsePart("cookie:session")
	if err != nil {
		t.Fatal(err)
	}
	return func(r *guard.Rule) { r.Key = []rule.Part{part} }
}
