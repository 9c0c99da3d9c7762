package proxy

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// TestDropNominated checks which fields a Connection field removes before rules run, and
// which it cannot remove.
func TestDropNominated(t *testing.T) {
	g, err := guard.New(guard.Config{Store: allowed(), Identity: &rule.Identity{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, UserIPHeaders: []string{"X-Real-Ip"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{guard: g}
	for connection, want := range map[string]string{
		"":                          "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
		"keep-alive":                "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
		"close":                     "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
		"Upgrade, te":               "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
		"X-Client-Id":               "Te Upgrade X-Forwarded-For X-Real-Ip",
		"close,\tx-client-id ,":     "Te Upgrade X-Forwarded-For X-Real-Ip",
		"a\nx-CLIENT-id":            "Te Upgrade X-Forwarded-For X-Real-Ip",
		"X-Forwarded-For":           "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
		"X-Real-IP, X-Client-Id":    "Te Upgrade X-Forwarded-For X-Real-Ip",
		"Connection, no such, \xff": "Te Upgrade X-Client-Id X-Forwarded-For X-Real-Ip",
	} {
		h := http.Header{"X-Client-Id": {"a"}, "X-Forwarded-For": {"b"}, "X-Real-Ip": {"c"}, "Upgrade": {"d"}, "Te": {"e"}}
		if connection != "" {
			h["Connection"] = strings.Split(connection, "\n")
		}
		l := list(h)
		p.dropNominated(l)
		h = l.Header()
		left := h["Connection"]
		delete(h, "Connection")
		if got := strings.Join(slices.Sorted(maps.Keys(h)), " "); got != want {
			t.Errorf("with Connection: %q the fields %s remain, want %s", connection, got, want)
		}
		// Otherwise the reverse proxy would remove the field from the forwarded request.
		if slices.ContainsFunc(left, func(line string) bool { return strings.Contains(strings.ToLower(line), "x-real-ip") }) {
			t.Errorf("Connection: %q: the forwarded Connection field still lists X-Real-Ip: %q", connection, left)
		}
	}
}
