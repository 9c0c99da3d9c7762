package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/report/prom"
	"github.com/headgate/headgate/rule"
)

// adminPart is the part that tells of the instance: the listeners of admin.listen and
// admin.health.
type adminPart struct {
	defaults

	instance *Instance
	hosts    atomic.Pointer[[]string] // admin.hosts
	sides    []*side
}

func newAdmin(i *Instance) *adminPart {
	a := &adminPart{instance: i}
	a.hosts.Store(&i.options.Config.Admin.Hosts)
	return a
}

// Start opens the sockets.
func (a *adminPart) Start(ctx context.Context) (func(), error) {
	i := a.instance
	described := prom.Config{Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version()}
	for _, p := range i.parts {
		p.Metrics(&described)
	}
	registry, err := prom.NewRegistry(described)
	if err != nil {
		return nil, fmt.Errorf("app: metrics: %w", err)
	}
	metrics, c := prom.Handler(registry), &i.options.Config.Admin
	for _, s := range [...]*side{
		{setting: "admin.listen", at: c.Listen, handler: a.adminHandler(metrics)},
		{setting: "admin.health", at: c.Health, handler: a.healthHandler(metrics)},
	} {
		if err := s.open(ctx, &i.inherited, i.options.Log); err != nil {
			return nil, err
		}
		a.sides = append(a.sides, s)
	}
	return a.begin, nil
}

func (a *adminPart) begin() {
	for _, s := range a.sides {
		if s.socket != nil {
			a.instance.serve(s.serve)
		}
	}
}

// Reload prepares the names that may ask for metrics.
func (a *adminPart) Reload(next *config.Config) (Change, error) {
	return Change{Commit: func() { a.hosts.Store(&next.Admin.Hosts) }}, nil
}

// Drain lets a scrape end.
func (a *adminPart) Drain(ctx context.Context) error {
	// Requests may have used up all of ctx.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminDrain)
	defer cancel()
	for _, s := range a.sides {
		s.close(ctx)
	}
	return nil
}

// Status implements Part.
func (a *adminPart) Status(s *admin.Status) {
	for _, side := range a.sides {
		switch at := side.address(); side.setting {
		case "admin.listen":
			s.Listen.Admin = at
		default:
			s.Listen.Health = at
		}
	}
}

// healthHandler is what may be open to a fleet: it tells no secret and takes no order.
// Metrics name rules and clients: a page in a browser is kept out of them.
func (a *adminPart) healthHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", byName(metrics, func() []string { return *a.hosts.Load() }))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.instance.ready(); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ready")
	})
	return mux
}

// adminHandler is for the operator: all of health, and state and profiles for who
// asks by address.
func (a *adminPart) adminHandler(metrics http.Handler) *http.ServeMux {
	i, deciding, mux := a.instance, a.instance.rules, http.NewServeMux()
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { tell(i.options.Log, w, i.Status()) })
	// A page in a browser can send a POST to an address that it cannot read.
	mux.Handle("POST /api/v1/reload", http.NewCrossOriginProtection().Handler(http.HandlerFunc(i.reloadNow)))
	mux.HandleFunc("GET /api/v1/shares", deciding.listShares)
	mux.HandleFunc("GET /api/v1/top", deciding.listTop)
	mux.HandleFunc("GET /api/v1/bans", deciding.listBans)
	mux.HandleFunc("DELETE /api/v1/bans/{id}", deciding.liftBan)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	all := a.healthHandler(metrics)
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
