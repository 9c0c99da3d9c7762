package app

import (
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/headgate/headgate/report/prom"
)

func (i *Instance) promConfig() prom.Config {
	return prom.Config{
		Report: i.report, Store: i.store.Stats, Front: i.frontState,
		Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version(),
	}
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
func (i *Instance) healthHandler(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
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

// adminHandler is for the operator: all of health, state and profiles.
func (i *Instance) adminHandler(metrics http.Handler) *http.ServeMux {
	mux := i.healthHandler(metrics)
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { i.tell(w, i.Status()) })
	mux.HandleFunc("GET /api/v1/bans", i.listBans)
	mux.HandleFunc("DELETE /api/v1/bans/{id}", i.liftBan)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
