package access

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
)

// TokenField has the token of a gateway that asks about a request of its client: Authorization there belongs to
// the client.
const TokenField = "Headgate-Token"

// Handler lets only the clients of the gate in that have a scope, with the token in the field Authorization.
func (g *Gate) Handler(scope config.Scope, next http.Handler) http.Handler {
	return g.handler(scope, "Authorization", func(w http.ResponseWriter, _ *http.Request, err error) { RefuseHTTP(w, err) }, next)
}

// Subrequests is Handler for gateways, with the token in TokenField. refuse answers a refused one, like RefuseSubrequest.
func (g *Gate) Subrequests(
	scope config.Scope, refuse func(w http.ResponseWriter, r *http.Request, err error), next http.Handler,
) http.Handler {
	return g.handler(scope, TokenField, refuse, next)
}

func (g *Gate) handler(
	scope config.Scope, field string, refuse func(http.ResponseWriter, *http.Request, error), next http.Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := g.terms.Load(); t.auth == 0 && t.everyone.scopes&scope == scope && g.addresses.policy.Load() == 0 {
			if scope&config.ScopeDecide == 0 { // Calls for operators show more to a client that may administer.
				r = r.WithContext(with(r.Context(), &Call{gate: g, client: t.everyone, from: peerOf(r.RemoteAddr)}))
			}
			next.ServeHTTP(w, r)
			return
		}
		c := &Call{gate: g, from: peerOf(r.RemoteAddr)}
		err := g.Arrive(c.from)
		if err == nil {
			c.by = Credentials{Token: tokenIn(r.Header, field), TLS: r.TLS}
			c.client, err = g.Authenticate(&c.by)
		}
		if err == nil {
			err = c.client.Permit(scope)
		}
		if err != nil {
			c.Refused(err)
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(with(r.Context(), c)))
	})
}

// tokenIn gives the token in a field. Two of them give none.
func tokenIn(h http.Header, field string) string {
	values := h[field]
	if field == "Authorization" {
		return tokenOf(values)
	}
	if len(values) != 1 {
		return ""
	}
	return strings.TrimSpace(values[0])
}

// RefuseHTTP answers a request with an error of this package: 401, 403, or 429 with Retry-After.
func RefuseHTTP(w http.ResponseWriter, err error) { refuseHTTP(w, err, http.StatusTooManyRequests) }

// RefuseSubrequest is RefuseHTTP with 503 in place of 429. A gateway may pass the status of its subrequest on to its client: 429
// would blame a client that is within its limits.
func RefuseSubrequest(w http.ResponseWriter, err error) {
	refuseHTTP(w, err, http.StatusServiceUnavailable)
}

// refuseHTTP answers a request. busy is the status of a *BusyError.
func refuseHTTP(w http.ResponseWriter, err error, busy int) {
	status := http.StatusInternalServerError
	switch reason, ok := ReasonOf(err); {
	case !ok:
	case reason == Unauthenticated:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="headgate"`)
	case reason == Forbidden:
		status = http.StatusForbidden
	default:
		status = busy
		if above, found := errors.AsType[*BusyError](err); found {
			w.Header().Set("Retry-After", strconv.FormatInt(fields.RetrySeconds(min(above.RetryAfter, guard.DefaultRetryAfterMax)), 10))
		}
	}
	http.Error(w, err.Error(), status)
}

// peerOf gives the address of the other end of a connection; the zero Addr for a unix socket.
func peerOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
