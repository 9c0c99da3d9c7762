package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// TestExchangeForgets checks that no value of one request leaks into the next, even if the
// caller forgets Reset.
func TestExchangeForgets(t *testing.T) {
	g, err := guard.New(guard.Config{
		Rules: []guard.Rule{keyed(t, "product", "/v1/product", "user_ip")}, Store: allowed(),
		Identity: &rule.Identity{
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, UserIPHeaders: []string{"X-Real-User-Ip"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var x httplimit.Exchange
	for _, c := range []struct{ target, sender, want string }{
		{"/v1/product", "203.0.113.1", "203.0.113.1"},
		{"/v1/product", "203.0.113.2", "203.0.113.2"},
		{"/v1/product", "nobody", "192.0.2.1"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.target, http.NoBody)
		r.Header.Set("X-Real-User-Ip", c.sender)
		if err := x.Admit(g, r); err != nil {
			t.Fatal(err)
		}
		if got := x.Request.UserIP.String(); got != c.want {
			t.Errorf("a request of client %s has the user IP %s, want %s", c.sender, got, c.want)
		}
	}
	if x.Reset(); x.Request.Header != nil || x.Request.UserIP.IsValid() {
		t.Errorf("after Reset the exchange has %+v", x.Request)
	}
}
