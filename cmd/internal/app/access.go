package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// accessControl is the component that knows the callers, and limits the clients of the server.
type accessControl struct {
	defaults

	instance *Instance
	control  *access.Control
	gates    []*access.Gate
	warned   []string // of the callers in force
}

func newAccessControl(i *Instance) (*accessControl, error) {
	a := &accessControl{instance: i, control: access.New(i.options.Log, i.trusts)}
	commit, err := a.prepare(i.options.Config)
	if err != nil {
		return nil, err
	}
	commit()
	return a, nil
}

// prepare reads the callers of a configuration. The commit logs what is probably not meant about them.
func (a *accessControl) prepare(c *config.Config) (commit func(), err error) {
	all, err := c.AllCallers()
	if err != nil {
		return nil, err
	}
	limits := config.ServerLimits{}
	if c.Server != nil {
		limits = c.Server.Limits
	}
	inForce, err := a.control.Prepare(all, limits)
	if err != nil {
		return nil, err
	}
	return func() {
		inForce()
		a.warn(c.CallerWarnings(all, time.Now()))
	}, nil
}

// warn logs the warnings that the callers before did not have.
func (a *accessControl) warn(texts []string) {
	for _, text := range texts {
		if !a.instance.options.probe && !slices.Contains(a.warned, text) {
			a.instance.options.Log.Warn("a setting of callers is probably not meant", "warning", text)
		}
	}
	a.warned = texts
}

// Reload prepares the callers and the limits. Sessions of callers that leave end at the commit.
func (a *accessControl) Reload(next *config.Config) (Change, error) {
	commit, err := a.prepare(next)
	return Change{Commit: commit}, err
}

// Drain implements Component.
func (a *accessControl) Drain(context.Context) error {
	a.control.Close()
	return nil
}

// gate makes the gate of a listener.
func (a *accessControl) gate(setting string, auth config.Auth, address string) *access.Gate {
	g := a.control.Gate(setting, auth, config.OnlyLocal(address))
	a.gates = append(a.gates, g)
	a.warnOpen(setting, auth, address)
	return g
}

// warnOpen warns about a listener that lets everyone in.
func (a *accessControl) warnOpen(setting string, auth config.Auth, address string) {
	if address != "" && auth == 0 && !config.OnlyLocal(address) && !a.instance.options.probe {
		a.instance.options.Log.Warn("every client that reaches a listener may use it, because it asks for no proof: set its auth, or "+
			"listen on a loopback address", "listener", setting, "address", address)
	}
}

// Metrics implements Component.
func (a *accessControl) Metrics(c *prom.Config) {
	c.Refused, c.Sessions = a.refused, func() int64 { return int64(a.control.Sessions()) }
}

// refused yields the refusals of all gates.
func (a *accessControl) refused(yield func(listener, reason string, n uint64)) {
	for _, g := range a.gates {
		for _, reason := range access.Reasons() {
			yield(g.Listener(), reason.String(), g.Refusals(reason))
		}
	}
}

// methodScopes has the scope of each method of gRPC, but for the health service, which is open to everyone. docs/security.md
// lists them.
func methodScopes() map[string]config.Scope {
	return map[string]config.Scope{
		"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": config.ScopeDecide,
		"/headgate.v1.Decisions/Decide":                                config.ScopeDecide,
		"/headgate.v1.Decisions/Stream":                                config.ScopeDecide,
		"/headgate.lease.v1.Leases/Report":                             config.ScopeLease,
		"/headgate.lease.v1.Leases/Stream":                             config.ScopeLease,
	}
}

// guarded registers a service whose clients the gate lets in.
func guarded(g *access.Gate, register grpcService) func(grpc.ServiceRegistrar) {
	return func(to grpc.ServiceRegistrar) { register(g.Registrar(to, methodScopes())) }
}

// guardedDecide serves POST with a token of the program in Authorization, and subrequests with one of the gateway in
// access.TokenField.
func guardedDecide(g *access.Gate, next http.Handler) http.Handler {
	posts := g.Handler(config.ScopeDecide, next)
	subrequests := g.Subrequests(config.ScopeDecide, httpdecide.Refuse, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.ServeHTTP(w, r)
			return
		}
		subrequests.ServeHTTP(w, r)
	})
}
