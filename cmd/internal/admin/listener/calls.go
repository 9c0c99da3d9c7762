package listener

import (
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Handlers are those of admin.listen and of admin.health.
func (a *Component) Handlers(metrics http.Handler) (admin, health http.Handler) {
	return a.adminHandler(a.gate, metrics), a.healthHandler(metrics)
}

// healthHandler has no secrets and no commands: a whole network may read it. Metrics contain
// the names of rules and clients, and DNS rebinding must not give them to a web page.
func (a *Component) healthHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", byName(calls.OwnSite(metrics.ServeHTTP), func() []string { return *a.hosts.Load() }))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { calls.WriteText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.o.Instance.Ready(); err != nil {
			calls.WriteText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		calls.WriteText(w, http.StatusOK, "ready")
	})
	return mux
}

// adminHandler is for the operators that a gate lets in. It adds state, commands and profiles to healthHandler.
func (a *Component) adminHandler(gate *access.Gate, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	for _, p := range a.o.Instance.Components() {
		for _, r := range p.Calls() {
			handler := http.Handler(r.Handler)
			if r.Scope != 0 {
				handler = gate.Handler(r.Scope, handler)
			}
			mux.Handle(r.Pattern, handler)
		}
	}
	all := a.healthHandler(metrics)
	all.Handle("/api/", byAddress(mux))
	all.Handle("/debug/", byAddress(mux))
	all.Handle("/console/", byAddress(mux))
	all.Handle("/{$}", byAddress(mux))
	return all
}

// Calls implements component.Component: the calls about the whole instance.
func (a *Component) Calls() []calls.Call {
	return append(calls.Profiles(),
		calls.Call{Pattern: "POST /api/v1/reload", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(a.reload)},
		calls.Call{Pattern: "GET /api/v1/status", Scope: config.ScopeRead, Handler: calls.OwnSite(a.status)},
		calls.Call{Pattern: "/debug/pprof/{$}", Scope: config.ScopeAdminister, Handler: calls.OwnSite(pprof.Index)})
}

// byAddress refuses host names other than localhost. It prevents a web page in the operator's
// browser from reading keys and lifting bans by DNS rebinding.
func byAddress(next http.Handler) http.Handler {
	return byName(next, func() []string { return nil })
}

// byName serves requests whose Host is an IP address, localhost or one of the names.
func byName(next http.Handler, names func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalName(r.Host) && !named(r.Host, names()) {
			calls.WriteText(w, http.StatusForbidden, "use an IP address or localhost, as in 127.0.0.1:9902: other host names are "+
				"refused to prevent DNS rebinding; list the host names that may read /metrics in admin.hosts")
			return
		}
		next.ServeHTTP(w, r)
	})
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

// reload serves ctl reload. The status is 200 when all parts were reloaded, 202 when settings wait for a restart,
// and 409 when a part failed. All these answers have a ReloadStatus.
func (a *Component) reload(w http.ResponseWriter, _ *http.Request) {
	s, err := a.o.Instance.ReloadNow()
	if err != nil {
		calls.WriteText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case len(s.Failures) > 0:
		w.WriteHeader(http.StatusConflict)
	case len(s.Waiting) > 0:
		w.WriteHeader(http.StatusAccepted)
	}
	calls.WriteJSON(a.o.Host.Log, w, s)
}

func (a *Component) status(w http.ResponseWriter, _ *http.Request) {
	calls.WriteJSON(a.o.Host.Log, w, a.o.Instance.Status())
}
