package listener

import (
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
)

// Handlers are those of admin.listen and of admin.health.
func (a *Component) Handlers(metrics http.Handler) (full, health http.Handler) {
	return a.adminHandler(a.gate, metrics), a.healthHandler(metrics)
}

// healthHandler has no secrets and no commands: a whole network may read it.
func (a *Component) healthHandler(metrics http.Handler) http.Handler {
	return a.protected(nil, a.health(metrics))
}

func (a *Component) health(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
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

// adminHandler is for the operators that a gate lets in. It adds the calls of all components to healthHandler.
func (a *Component) adminHandler(gate *access.Gate, metrics http.Handler) http.Handler {
	mux := a.health(metrics)
	for _, p := range a.o.Instance.Components() {
		for _, r := range p.Calls() {
			r = a.wrapped(r)
			handler := http.Handler(r.Handler)
			if r.Scope != 0 {
				handler = gate.Handler(r.Scope, a.signed(handler))
			}
			mux.Handle(r.Pattern, handler)
		}
	}
	return a.protected(gate, mux)
}

// wrapped is a call as the components that answer for a fleet serve it.
func (a *Component) wrapped(call calls.Call) calls.Call {
	for _, p := range a.o.Instance.Components() {
		if w, wraps := p.(calls.Wrapper); wraps {
			call = w.Wrap(call)
		}
	}
	return call
}

// signed adds the name of the instance to answers.
func (a *Component) signed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(admin.InstanceHeader, *a.name.Load())
		next.ServeHTTP(w, r)
	})
}

// Calls implements component.Component: the calls about the whole instance.
func (a *Component) Calls() []calls.Call {
	return append(calls.Profiles(),
		calls.Call{Pattern: "POST /api/v1/reload", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(a.reload)},
		calls.Call{Pattern: "GET /api/v1/status", Scope: config.ScopeRead, Handler: calls.OwnSite(a.status)},
		calls.Call{Pattern: "GET /debug/pprof/{$}", Scope: config.ScopeAdminister, Handler: calls.OwnSite(pprof.Index)})
}

// reload serves ctl reload. The status is 200 when all parts were reloaded, 202 when settings wait for a restart,
// and 409 when a part failed. All these answers have a ReloadStatus.
func (a *Component) reload(w http.ResponseWriter, r *http.Request) {
	s, err := a.o.Instance.ReloadNow(operator(r))
	if err != nil {
		calls.WriteText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	after := "reloaded"
	if len(s.Failures) > 0 {
		after = "not reloaded: the former configuration stays in effect"
	}
	a.o.Host.Actions.Add(admin.Action{
		Time: time.Now().UTC(), Action: "reload", Object: "configuration", Caller: access.CallOf(r.Context()).Client().Name(),
		Address: r.RemoteAddr, After: after,
	})
	w.Header().Set("Content-Type", "application/json")
	switch {
	case len(s.Failures) > 0:
		w.WriteHeader(http.StatusConflict)
	case len(s.Waiting) > 0:
		w.WriteHeader(http.StatusAccepted)
	}
	calls.WriteJSON(a.o.Host.Log, w, s)
}

// operator names the caller of a request: by its name in server.callers, or by its address.
func operator(r *http.Request) string {
	if name := access.CallOf(r.Context()).Client().Name(); name != "" {
		return "operator " + name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "operator at " + host
}

func (a *Component) status(w http.ResponseWriter, _ *http.Request) {
	calls.WriteJSON(a.o.Host.Log, w, a.o.Instance.Status())
}
