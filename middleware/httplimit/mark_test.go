package httplimit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestMark checks that Mark makes the fields that Forward makes, in the fields of the request itself, and leaves the context as it is:
// another context would cost each request a goroutine in the proxy's client.
func TestMark(t *testing.T) {
	basic, soft := degrade("X-Service-Level", "basic"), func(r *guard.Rule) { r.Soft = 80 }
	named := func(name string) func(*guard.Rule) { return func(r *guard.Rule) { r.Name = name } }
	throttle, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 8}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		store  *scripted
		rules  []guard.Rule
		stages []guard.Stage
	}{
		{"within the limits", allowed(), []guard.Rule{product(t, basic, soft)}, nil},
		{"above the soft limit", nearly(), []guard.Rule{product(t, soft)}, nil},
		{"degraded by several", denied(headgate.OverLimit, time.Second), []guard.Rule{
			product(t, basic), product(t, basic, named("b")), product(t, degrade("X-Service-Level", "least"), named("c")),
		}, nil},
		{"a throttle", nearly(), []guard.Rule{product(t, soft)}, []guard.Stage{throttle}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := guard.New(guard.Config{Store: c.store, Rules: c.rules, Stages: c.stages})
			if err != nil {
				t.Fatal(err)
			}
			var x httplimit.Exchange
			r := httptest.NewRequest(http.MethodGet, "/v1/product", nil)
			r.Header = http.Header{
				"Headgate-Warning": {"forged"}, "X-Service-Level": {"premium", "gold"}, "Headgate_timeout": {"1"}, "Headgate-Work": {"cpu=1ms"},
				"X-Other": {"kept"}, "Connection": {"close, X-Service-Level", "headgate-timeout"},
			}
			if err := x.Admit(g, r); err != nil {
				t.Fatal(err)
			}
			want := x.Forward(g, r).Header
			got := r.Header.Clone()
			if marked := x.Mark(g, r, fields.Map(got)); marked.Context() != r.Context() {
				t.Error("Mark changes the context")
			}
			if ticket := x.Detach(); ticket != nil {
				ticket.Done(guard.Outcome{Status: http.StatusOK})
			}
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("Mark makes %q, Forward %q", got, want)
			}
		})
	}
}
