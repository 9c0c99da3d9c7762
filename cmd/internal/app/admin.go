package app

import (
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/rule"
)

// healthHandler has no secrets and no commands: a whole network may read it. Metrics contain
// the names of rules and clients, and DNS rebinding must not give them to a web page.
func (a *adminServers) healthHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", byName(ownSite(metrics.ServeHTTP), func() []string { return *a.hosts.Load() }))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.instance.ready(); err != nil {
			writeText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeText(w, http.StatusOK, "ready")
	})
	return mux
}

// adminHandler is for the operators that a gate lets in. It adds state, commands and profiles to healthHandler.
func (a *adminServers) adminHandler(gate *access.Gate, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.Handle(r.pattern, gate.Handler(r.scope, r.handler))
	}
	all := a.healthHandler(metrics)
	all.Handle("/api/", byAddress(mux))
	all.Handle("/debug/", byAddress(mux))
	return all
}

// routes lists what needs a scope. docs/security.md lists it too. Each route refuses web pages of other sites.
func (a *adminServers) routes() []adminRoute {
	i, deciding := a.instance, a.instance.rules
	all := slices.Concat(a.objectRoutes(), profileRoutes(), []adminRoute{
		{"POST /api/v1/reload", config.ScopeAdminister, ownSiteOrProgram(i.reloadNow)},
		{"DELETE /api/v1/bans/{id}", config.ScopeAdminister, ownSiteOrProgram(deciding.liftBan)},
	})
	for _, r := range []adminRoute{
		{"GET /api/v1/status", config.ScopeRead, func(w http.ResponseWriter, _ *http.Request) { writeJSON(i.options.Log, w, i.Status()) }},
		{"GET /api/v1/shares", config.ScopeRead, deciding.listShares},
		{"GET /api/v1/leases", config.ScopeRead, a.parameters(a.listLeases, "resource")},
		{"GET /api/v1/top", config.ScopeRead, deciding.listTop},
		{"GET /api/v1/bans", config.ScopeRead, deciding.listBans},
		{"/debug/pprof/{$}", config.ScopeAdminister, pprof.Index},
	} {
		all = append(all, adminRoute{r.pattern, r.scope, ownSite(r.handler)})
	}
	return all
}

// profileRoutes lists the profiles of the process.
func profileRoutes() []adminRoute {
	return []adminRoute{
		{"/debug/pprof/", config.ScopeAdminister, ownSiteOrProgram(pprof.Index)},
		{"/debug/pprof/cmdline", config.ScopeAdminister, ownSiteOrProgram(pprof.Cmdline)},
		{"/debug/pprof/profile", config.ScopeAdminister, ownSiteOrProgram(pprof.Profile)},
		{"/debug/pprof/symbol", config.ScopeAdminister, ownSiteOrProgram(pprof.Symbol)},
		{"/debug/pprof/trace", config.ScopeAdminister, ownSiteOrProgram(pprof.Trace)},
	}
}

// objectRoutes lists the calls for rules, plans, customers, usage and records.
func (a *adminServers) objectRoutes() (all []adminRoute) {
	for _, kind := range source.Kinds() {
		all = append(all, a.routesOf(kind)...)
	}
	return append(all,
		adminRoute{"GET /api/v1/usage", config.ScopeAdminister, ownSiteOrProgram(
			a.parameters(a.listUsage, "customer", "limit", "after", "from", "to"))},
		adminRoute{"POST /api/v1/usage/reset", config.ScopeAdminister, ownSiteOrProgram(
			a.parameters(a.reset, "customer", "quota", "period", "dry_run", "reason"))},
		adminRoute{"GET /api/v1/audit", config.ScopeAdminister, ownSiteOrProgram(a.parameters(a.listAudit, "object", "limit", "after"))},
	)
}

// adminRoute is a pattern of http.ServeMux with the scope that its clients need.
type adminRoute struct {
	pattern string
	scope   config.Scope
	handler http.HandlerFunc
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
			writeText(w, http.StatusForbidden, "use an IP address or localhost, as in 127.0.0.1:9902: other host names are refused to "+
				"prevent DNS rebinding; list the host names that may read /metrics in admin.hosts")
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

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") //nolint:gosec // because browsers show text/plain as text
}
