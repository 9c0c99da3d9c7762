package app

import (
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"github.com/headgate/headgate/report/prom"
	"github.com/headgate/headgate/rule"
)

func (i *Instance) promConfig() prom.Config {
	c := prom.Config{
		Report: i.report, Store: i.memoryStats, Front: i.frontState, Shares: i.promShares,
		Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version(),
	}
	if i.store.Shared() {
		c.Shared = i.store.State
	}
	return c
}

func (i *Instance) frontState() prom.Front {
	s := i.socket.Stats()
	f := prom.Front{Connections: int64(s.Open), MaxConnections: int64(s.Limit), Accepted: s.Accepted, AcceptPauses: s.Pauses}
	if i.access != nil {
		f.AccessLinesDropped = i.access.Dropped()
	}
	if i.clients != nil {
		f.CertificateExpires = i.clients.Expires()
	}
	return f
}

// healthHandler is what may be open to a fleet: it tells no secret and takes no order.
// Metrics name rules and clients: a page in a browser is kept out of them.
func (i *Instance) healthHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", byName(metrics, func() []string { return i.config.Load().Admin.Hosts }))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if i.draining.Load() {
			say(w, http.StatusServiceUnavailable, "draining")
			return
		}
		say(w, http.StatusOK, "ready")
	})
	return mux
}

// adminHandler is for the operator: all of health, and state and profiles for who
// asks by address.
func (i *Instance) adminHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { i.tell(w, i.Status()) })
	// A page in a browser can send a POST to an address that it cannot read.
	mux.Handle("POST /api/v1/reload", http.NewCrossOriginProtection().Handler(http.HandlerFunc(i.reloadNow)))
	mux.HandleFunc("GET /api/v1/shares", i.listShares)
	mux.HandleFunc("GET /api/v1/top", i.listTop)
	mux.HandleFunc("GET /api/v1/bans", i.listBans)
	mux.HandleFunc("DELETE /api/v1/bans/{id}", i.liftBan)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	all := i.healthHandler(metrics)
	all.Handle("/api/", byAddress(mux))
	all.Handle("/debug/", byAddress(mux))
	return all
}

// byAddress keeps pages in the operator's browser out: they read keys of banned
// clients, and lift bans, if they may.
func byAddress(next http.Handler) http.Handler {
	return byName(next, func() []string { return nil })
}

// byName answers requests by an address, as localhost, or by one of the names.
func byName(next http.Handler, names func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !meantForUs(r.Host) && !named(r.Host, names()) {
			say(w, http.StatusForbidden, "use an IP address or localhost, as in 127.0.0.1:9902: other host names are refused to "+
				"prevent DNS rebinding; admin.hosts names those that may ask for /metrics")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// named reports whether a Host field is one of the names, with any port.
func named(host string, names []string) bool {
	name, _, ok := rule.ParseHost(host)
	return ok && name != "" && slices.Contains(names, name)
}

// meantForUs reports whether a request came by an address or as localhost. A page
// in the operator's browser can make its own name point here, and be believed to be
// of one origin with us; it cannot have an address as its name.
func meantForUs(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	_, err = netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
