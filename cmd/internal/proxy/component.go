// Package proxy is the room of headgate proxy: the component with its listener, its certificates and its upstream. Package
// cmd/internal/front/proxy serves the protocol.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	front "github.com/headgate/headgate/cmd/internal/front/proxy"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/cmd/internal/http1/client"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
)

// Options are what a Component needs.
type Options struct {
	Host   *component.Host
	Config *config.Config
	Guard  *guard.Guard // nil if the rules have faults: New then only reports those of the files of TLS
	Report *report.Report
	Access *AccessLog
	Memory *bounds.Process
}

// Component is the component that serves the proxy of one upstream.
type Component struct {
	component.Defaults

	o        Options
	clients  *certs.Server // Nil without TLS.
	proxy    *front.Proxy
	upstream atomic.Pointer[upstream]

	socket *listen.Listener // Nil before Start.
	server *front.Server    // Nil before the server serves.
	serves atomic.Bool
}

// upstream is the transport to the service. A reload replaces it.
type upstream struct {
	*front.Upstream

	certificates *certs.Client // Nil when no TLS files are configured.
}

// New makes the component. It is nil without an upstream.
func New(o Options) (*Component, error) {
	files, err := openCertificates(o.Host, o.Config)
	if o.Config.Proxy.Upstream == nil || o.Guard == nil {
		return nil, err
	}
	p := &Component{o: o, clients: files.clients}
	described, to, fault := p.describe(o.Config, files.upstream)
	if fault != nil {
		return nil, errors.Join(fault, err)
	}
	p.upstream.Store(to)
	if p.proxy, fault = front.New(described); fault != nil {
		return nil, errors.Join(fault, err)
	}
	return p, err
}

// describe creates the proxy's configuration and its transport to the upstream.
func (p *Component) describe(c *config.Config, files *certs.Client) (front.Config, *upstream, error) {
	style, ok := fields.ParseStyle(string(c.Proxy.HeaderStyle))
	if !ok {
		return front.Config{}, nil, fmt.Errorf(
			"app: unknown header_style %q: write draft, x-ratelimit, draft03 or none", c.Proxy.HeaderStyle)
	}
	to, err := front.NewUpstream(front.UpstreamConfig{
		URL: c.Proxy.Upstream, Timeout: c.Proxy.UpstreamTimeout, BodyIdle: c.Proxy.BodyIdleTimeout, TLS: newestUpstream(files),
	})
	if err != nil {
		return front.Config{}, nil, err
	}
	fast := c.Proxy.DataPlane == config.DataPlaneFast
	var own *client.Client
	if fast {
		own = to.Client()
	}
	return front.Config{
		Guard: p.o.Guard, Upstream: to.URL, Transport: to, Traffic: &p.o.Report.Traffic,
		Style: style, CORS: c.CORS, BodyIdle: c.Proxy.BodyIdleTimeout, Log: p.o.Host.Log, Instance: p.o.Host.NameToClients(c),
		Fast: fast, Client: own, Certificates: c.Proxy.TLS.ClientCA != "",
	}, &upstream{to, files}, nil
}

// Start opens the listener.
func (p *Component) Start(ctx context.Context) (func(), error) {
	c := &p.o.Config.Proxy
	socket, err := listen.Open(ctx, listen.Config{
		Address: c.Listen, Inherited: &p.o.Host.Inherited,
		MaxConnections: c.MaxConnections, PerAddress: c.MaxConnectionsPerAddress, Exempt: p.trusts,
		ProxyProtocol: c.ProxyProtocol, ProxyProtocolUnix: c.ProxyProtocolUnix,
	})
	if err != nil {
		return nil, component.ListenError("proxy.listen", err)
	}
	p.socket = socket
	return p.begin, nil
}

func (p *Component) begin() {
	c := &p.o.Config.Proxy
	var secured *tls.Config
	if p.clients != nil {
		secured = p.clients.Config()
	}
	p.server = front.NewServer(p.proxy, front.ServerConfig{
		ReadHeader: c.ReadHeaderTimeout, Idle: c.IdleTimeout, MaxHeader: int(c.MaxHeader), TLS: secured,
		MaxRequests: c.MaxRequests, MaxConnections: c.MaxConnections,
		Memory: p.o.Memory.Now(), Trusts: p.trusts,
		RequestID: c.RequestID, Access: p.o.Access.Current(), KeyNames: p.o.Report.KeyNames(), Instance: p.o.Host.Name(p.o.Config),
		Identity: p.o.Config.Log.Identity, IdentityPlain: p.o.Config.Log.IdentityPlain,
		Log: p.o.Host.Log,
	})
	p.o.Host.Serve(func() error { return p.server.Serve(p.socket) })
	p.serves.Store(true)
}

// trusts reports whether identity.trusted_proxies contains the address.
func (p *Component) trusts(peer netip.Addr) bool { return p.o.Guard.Identity().Trusts(peer) }

// Reload prepares the upstream, the header style and the timeouts of bodies.
func (p *Component) Reload(next *config.Config) (component.Change, error) {
	if next.Proxy.Upstream == nil {
		return component.Change{}, errors.New("app: the new configuration has no upstream: write proxy.upstream")
	}
	files, err := upstreamCertificates(p.o.Host, next)
	if err != nil {
		return component.Change{}, err
	}
	described, to, err := p.describe(next, files)
	if err != nil {
		return component.Change{}, err
	}
	commit, err := p.proxy.Prepare(described)
	if err != nil {
		return component.Change{}, err
	}
	return component.Change{
		Commit: func() {
			commit()
			p.upstream.Swap(to).CloseIdleConnections()
			if p.server != nil { // A source gives its first objects before the proxy serves; begin reads the log then.
				p.server.SetAccess(front.AccessConfig{
					Access: p.o.Access.Current(), Instance: p.o.Host.Name(next), KeyNames: p.o.Report.KeyNames(),
					Identity: next.Log.Identity, IdentityPlain: next.Log.IdentityPlain,
				})
				p.server.Rebound(p.o.Memory.Reloaded(next))
			}
			p.o.Access.Retire()
		},
		Discard: to.CloseIdleConnections,
	}, nil
}

// Files implements component.Reopener.
func (p *Component) Files() []component.File {
	c := certificates{p.clients, p.upstream.Load().certificates}
	return c.files(p.o.Host.Log)
}

// Drain refuses new requests and waits for the requests in flight.
func (p *Component) Drain(ctx context.Context) error {
	defer p.upstream.Load().CloseIdleConnections()
	switch {
	case p.server != nil:
		return p.server.Drain(ctx)
	case p.socket != nil:
		return p.socket.Close()
	}
	return nil
}

// Ready implements component.Component.
func (p *Component) Ready() error {
	if !p.serves.Load() {
		return errors.New("the proxy is starting")
	}
	return nil
}

// Metrics implements component.Component.
func (p *Component) Metrics(c *prom.Config) { c.Front = p.frontState }

func (p *Component) frontState() prom.Front {
	s := p.socket.Stats()
	f := prom.Front{Connections: int64(s.Open), MaxConnections: int64(s.Limit), Accepted: s.Accepted, AcceptPauses: s.Pauses}
	f.AccessLinesDropped = p.o.Access.Lost()
	if p.clients != nil {
		f.CertificateExpires = p.clients.Expires()
	}
	return f
}

// Status implements component.Component.
func (p *Component) Status(s *admin.Status) {
	s.Upstream = p.upstream.Load().URL.Redacted()
	if p.socket != nil {
		s.Listen.Proxy = p.socket.Addr().String()
	}
}

// Bounds returns the bounds of memory in force, while the proxy serves.
func (p *Component) Bounds() heap.Bounds { return p.server.Bounds() }
