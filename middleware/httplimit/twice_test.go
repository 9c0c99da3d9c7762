package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestTwoGuards checks a second guard around a handler. It keeps the first guard's marks and
// adds its own. It still removes the client's values under these names.
func TestTwoGuards(t *testing.T) {
	soft, named := func(r *guard.Rule) { r.Soft = 80 }, func(name string) func(*guard.Rule) { return func(r *guard.Rule) { r.Name = name } }
	const first, second = `soft-limit; policy="product"`, `soft-limit; policy="inner"`
	forged := http.Header{"Headgate-Warning": {"forged", first}, "X-Service-Level": {"gold"}}
	for _, c := range []struct {
		name         string
		outer, inner headgate.Store
		rules        [2]guard.Rule
		warning      []string
		level        []string
	}{
		{"the first warns", nearly(), allowed(), [2]guard.Rule{product(t, soft), product(t, soft, named("inner"))}, []string{first}, []string{"gold"}},
		{"both warn", nearly(), nearly(), [2]guard.Rule{product(t, soft), product(t, soft, named("inner"))}, []string{first, second}, []string{"gold"}},
		{"the second warns", allowed(), nearly(), [2]guard.Rule{product(t, soft), product(t, soft, named("inner"))}, []string{second}, []string{"gold"}},
		{"none warns", allowed(), allowed(), [2]guard.Rule{product(t, soft), product(t, soft, named("inner"))}, nil, []string{"gold"}},
		{
			"both degrade", denied(headgate.OverLimit, time.Second), denied(headgate.OverLimit, time.Second),
			[2]guard.Rule{product(t, degrade("X-Service-Level", "basic")), product(t, degrade("X-Service-Level", "least"), named("inner"))},
			nil,
			[]string{"basic", "least"},
		},
		{
			"the first degrades", denied(headgate.OverLimit, time.Second), allowed(),
			[2]guard.Rule{product(t, degrade("X-Service-Level", "basic")), product(t, degrade("X-Service-Level", "least"), named("inner"))},
			nil,
			[]string{"basic"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got service
			h := httplimit.New(newGuard(t, c.inner, c.rules[1]), httplimit.Options{})(&got)
			h = httplimit.New(newGuard(t, c.outer, c.rules[0]), httplimit.Options{})(h)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
			r.Header = forged.Clone()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if sees := got.request.Header["Headgate-Warning"]; !slices.Equal(sees, c.warning) {
				t.Errorf("the service got the warning %q, want %q", sees, c.warning)
			}
			if sees := got.request.Header["X-Service-Level"]; !slices.Equal(sees, c.level) {
				t.Errorf("the service got the level %q, want %q", sees, c.level)
			}
			if notified := w.Header()["Headgate-Warning"]; !slices.Equal(notified, c.warning) {
				t.Errorf("the client got the warning %q, want %q", notified, c.warning)
			}
		})
	}
}
