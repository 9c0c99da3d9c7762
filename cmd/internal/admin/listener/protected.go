package listener

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/rule"
)

// foreignHost is the answer to a request by a host name that may be that of a web page.
const foreignHost = "use an IP address or localhost, as in 127.0.0.1:9902: other host names are refused to prevent DNS rebinding; list " +
	"the host names that may read /metrics in admin.hosts, which with admin.auth: token may read everything"

// protected is in front of all routes of a listener, so that no route can be without the checks: a web page of another site reads and
// changes nothing, also not by DNS rebinding, and no answer is kept or taken for another type. gate is nil for admin.health.
//
// Probes may use any host name, because /healthz and /readyz have no data.
func (a *Component) protected(gate *access.Gate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store") // Static files replace it.
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		if !isLocalName(r.Host) && !named(r.Host, a.namesFor(gate, r.URL.Path)) {
			calls.WriteText(w, http.StatusForbidden, foreignHost)
			return
		}
		calls.Guarded(next.ServeHTTP)(w, r)
	})
}

// namesFor are the host names by which a path may be requested. A web page that points its name at this listener has no token, so all
// paths accept the names of admin.hosts where the listener asks for one. Metrics have no secrets but the names of rules and clients.
func (a *Component) namesFor(gate *access.Gate, path string) []string {
	if path == "/metrics" || gate.Auth() != 0 {
		return *a.hosts.Load()
	}
	return nil
}

// named reports whether a Host field has one of the names, with any port.
func named(host string, names []string) bool {
	name, _, ok := rule.ParseHost(host)
	return ok && name != "" && slices.Contains(names, name)
}

// isLocalName reports whether a Host field is an IP address or localhost. By DNS rebinding, a
// web page can point its own name at this listener and become same-origin with it. A page
// cannot have an IP address as its name.
func isLocalName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	_, err = netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost")
}
