package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestManyOptions checks that the work for fields and options of Connection grows as their number, not as its square: 16 times as many
// take at most 64 times as long.
func TestManyOptions(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	for name, build := range map[string]func(n int) http.Header{
		"one line names every field": func(n int) http.Header {
			h := http.Header{}
			for i := range n {
				h[fmt.Sprintf("X-%d", i)] = []string{"a"}
			}
			h["Connection"] = []string{strings.Join(slices.Collect(maps.Keys(h)), ",")}
			return h
		},
		"many lines":                      func(n int) http.Header { return http.Header{"Connection": slices.Repeat([]string{"a"}, n)} },
		"many lines that name the client": func(n int) http.Header { return http.Header{"Connection": slices.Repeat([]string{"X-Real-Ip, b"}, n)} },
	} {
		measure := func(n int) time.Duration {
			shortest := time.Hour
			for range 5 {
				l := list(build(n))
				began := time.Now()
				p.dropNominated(l)
				removeHopByHop(l)
				shortest = min(shortest, time.Since(began))
			}
			return shortest
		}
		if few, many := measure(500), measure(8000); many > 64*few {
			t.Errorf("%s: %v for 500, %v for 8,000", name, few, many)
		}
	}
}
