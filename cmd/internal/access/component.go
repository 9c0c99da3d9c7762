package access

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// Component is the component that knows the callers, and limits the clients of the server.
type Component struct {
	component.Defaults

	host    *component.Host
	control *Control
	gates   []*Gate
	warned  []string // of the callers in force
}

// NewComponent reads the callers of a configuration. trusts reports whether identity.trusted_proxies contains an address.
func NewComponent(host *component.Host, c *config.Config, trusts func(netip.Addr) bool) (*Component, error) {
	a := &Component{host: host, control: New(host.Log, trusts)}
	commit, err := a.prepare(c)
	if err != nil {
		return nil, err
	}
	commit()
	return a, nil
}

// prepare reads the callers of a configuration. The commit logs what is probably not meant about them.
func (a *Component) prepare(c *config.Config) (commit func(), err error) {
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
		a.warn(append(c.CallerWarnings(all, time.Now()), c.AdminWarnings()...))
	}, nil
}

// warn logs the warnings that the callers before did not have.
func (a *Component) warn(texts []string) {
	for _, text := range texts {
		if !a.host.Probe && !slices.Contains(a.warned, text) {
			a.host.Log.Warn("a setting of callers is probably not meant", "warning", text)
		}
	}
	a.warned = texts
}

// Reload prepares the callers and the limits. Sessions of callers that leave end at the commit.
func (a *Component) Reload(next *config.Config) (component.Change, error) {
	commit, err := a.prepare(next)
	return component.Change{Commit: commit}, err
}

// Drain implements component.Component.
func (a *Component) Drain(context.Context) error {
	a.control.Close()
	return nil
}

// Gate makes the gate of a listener.
func (a *Component) Gate(setting string, auth config.Auth, address string) *Gate {
	g := a.control.Gate(setting, auth, config.OnlyLocal(address))
	a.gates = append(a.gates, g)
	a.WarnOpen(setting, auth, address)
	return g
}

// WarnOpen warns about a listener that lets everyone in.
func (a *Component) WarnOpen(setting string, auth config.Auth, address string) {
	if address != "" && auth == 0 && !config.OnlyLocal(address) && !a.host.Probe {
		a.host.Log.Warn("every client that reaches a listener may use it, because it asks for no proof: set its auth, or "+
			"listen on a loopback address", "listener", setting, "address", address)
	}
}

// Sessions counts the open sessions of callers.
func (a *Component) Sessions() int { return a.control.Sessions() }

// Metrics implements component.Component.
func (a *Component) Metrics(c *prom.Config) {
	c.Refused, c.Sessions = a.refused, func() int64 { return int64(a.control.Sessions()) }
}

// refused yields the refusals of all gates.
func (a *Component) refused(yield func(listener, reason string, n uint64)) {
	for _, g := range a.gates {
		for _, reason := range Reasons() {
			yield(g.Listener(), reason.String(), g.Refusals(reason))
		}
	}
}

// MethodScopes has the scope of each method of gRPC, but for the health service, which is open to everyone. docs/security.md
// lists them.
func MethodScopes() map[string]config.Scope {
	return map[string]config.Scope{
		"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": config.ScopeDecide,
		"/headgate.v1.Decisions/Decide":                                config.ScopeDecide,
		"/headgate.v1.Decisions/Stream":                                config.ScopeDecide,
		"/headgate.lease.v1.Leases/Report":                             config.ScopeLease,
		"/headgate.lease.v1.Leases/Stream":                             config.ScopeLease,
	}
}
