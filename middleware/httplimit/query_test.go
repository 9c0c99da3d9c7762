package httplimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestQuery: a rule sees the decoded query. With OneValue, a query that services read differently is refused with 400, unless the rule is in
// shadow.
func TestQuery(t *testing.T) {
	exports := func(mode guard.Mode) func(*guard.Rule) {
		return func(r *guard.Rule) { r.Match.Query, r.Mode = map[string]string{"format": "csv"}, mode }
	}
	for _, c := range []struct {
		target  string
		one     bool
		mode    guard.Mode
		results int
		err     error
	}{
		{"/v1/product?format=csv&page=2", true, guard.Enforce, 1, nil},
		{"/v1/product?page=%32&f%6Frmat=cs%76", true, guard.Enforce, 1, nil},
		{"/v1/product?format=json", true, guard.Enforce, 0, nil},
		{"/v1/product?format=", true, guard.Enforce, 0, nil},
		{"/v1/product", true, guard.Enforce, 0, nil},
		{"/v1/product?format=csv&format=json", true, guard.Enforce, 0, httplimit.ErrQuery},
		{"/v1/product?Format=csv", true, guard.Enforce, 0, httplimit.ErrQuery},
		{"/v1/product?x=1;format=csv", true, guard.Enforce, 0, httplimit.ErrQuery},
		{"/v1/product?format=csv&format=json", true, guard.Shadow, 1, nil},
		{"/v1/product?format=csv&format=json", false, guard.Enforce, 1, nil}, // The first value counts, as in url.Values.Get.
		{"/v1/product?format=json&format=csv", false, guard.Enforce, 0, nil},
	} {
		g := newGuard(t, allowed(), product(t, exports(c.mode)))
		x := httplimit.Exchange{OneValue: c.one}
		err := x.Admit(g, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.target, http.NoBody))
		if !errors.Is(err, c.err) || err == nil && len(x.Answer.Results) != c.results {
			t.Errorf("%s, OneValue %v, %v: got %v and %d results; want %v and %d", c.target, c.one, c.mode, err, len(x.Answer.Results), c.err, c.results)
		}
		if err != nil {
			w := httptest.NewRecorder()
			if x.Fail(w, err) || w.Code != http.StatusBadRequest {
				t.Errorf("%s: the answer is %d", c.target, w.Code)
			}
		}
		x.Done(guard.Refused)
	}
}
