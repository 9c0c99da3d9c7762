package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/front/proxy"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/http1/client"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
)

// proxyServer is the component that serves the proxy of one upstream.
type proxyServer struct {
	instance *Instance
	access   *accessLog
	clients  *certs.Server // Nil without TLS.
	proxy    *proxy.Proxy
	upstream atomic.Pointer[upstream]

	socket *listen.Listener // Nil before Start.
	server *proxy.Server    // Nil before the server serves.
	serves atomic.Bool
}

// upstream is the transport to the service. A reload replaces it.
type upstream struct {
	*proxy.Upstream

	certificates *certs.Client // Nil when no TLS files are configured.
}

func newProxyServer(i *Instance, access *accessLog, files certificates) (*proxyServer, error) {
	p := &proxyServer{instance: i, access: access, clients: files.clients}
	described, to, err := p.describe(i.options.Config, files.upstream)
	if err != nil {
		return nil, err
	}
	p.upstream.Store(to)
	p.proxy, err = proxy.New(described)
	return p, err
}

// describe creates the proxy's configuration and its transport to the upstream.
func (p *proxyServer) describe(c *config.Config, files *certs.Client) (proxy.Config, *upstream, error) {
	style, ok := fields.ParseStyle(string(c.Proxy.HeaderStyle))
	if !ok {
		return proxy.Config{}, nil, fmt.Errorf(
			"app: unknown header_style %q: write draft, x-ratelimit, draft03 or none", c.Proxy.HeaderStyle)
	}
	to, err := proxy.NewUpstream(proxy.UpstreamConfig{
		URL: c.Proxy.Upstream, Timeout: c.Proxy.UpstreamTimeout, BodyIdle: c.Proxy.BodyIdleTimeout, TLS: newestUpstream(files),
	})
	if err != nil {
		return proxy.Config{}, nil, err
	}
	fast := c.Proxy.DataPlane == config.DataPlaneFast && fastAvailable()
	var own *client.Client
	if fast {
		own = to.Client()
	}
	deciding := p.instance.rules
	return proxy.Config{
		Guard: deciding.guard, Upstream: to.URL, Transport: to, Traffic: &deciding.report.Traffic,
		Style: style, BodyIdle: c.Proxy.BodyIdleTimeout, Log: p.instance.options.Log,
		Fast: fast, Client: own, Certificates: c.Proxy.TLS.ClientCA != "",
	}, &upstream{to, files}, nil
}

func (p *proxyServer) Start(ctx context.Context) (func(), error) {
	c := &p.instance.options.Config.Proxy
	socket, err := listen.Open(ctx, listen.Config{
		Address: c.Listen, Inherited: &p.instance.inherited,
		MaxConnections: c.MaxConnections, PerAddress: c.MaxConnectionsPerAddress, Exempt: p.instance.trusts,
		ProxyProtocol: c.ProxyProtocol, ProxyProtocolUnix: c.ProxyProtocolUnix,
	})
	if err != nil {
		return nil, listenError("proxy.listen", err)
	}
	p.socket = socket
	return p.begin, nil
}

func (p *proxyServer) begin() {
	c, o := &p.instance.options.Config.Proxy, &p.instance.options
	var secured *tls.Config
	if p.clients != nil {
		secured = p.clients.Config()
	}
	bounds := proxyBounds(o.Config)
	p.server = proxy.NewServer(p.proxy, proxy.ServerConfig{
		ReadHeader: c.ReadHeaderTimeout, Idle: c.IdleTimeout, MaxHeader: int(c.MaxHeader), TLS: secured,
		MaxRequests: c.MaxRequests, MaxConnections: c.MaxConnections,
		Memory: bounds, Trusts: p.instance.trusts,
		RequestID: c.RequestID, Access: p.access.current(), KeyNames: p.instance.rules.report.KeyNames(), Log: o.Log,
	})
	p.instance.serve(func() error { return p.server.Serve(p.socket) })
	p.serves.Store(true)
}

// proxyBounds returns the bounds of memory. Connections are closed only while they take half of what is meant for them.
func proxyBounds(c *config.Config) heap.Bounds {
	bound := c.MemoryBound()
	most, traffic := pressureBounds(c, bound, heapLimit(c, bound, MachineMemory()))
	return heap.Bounds{Most: most, Fixed: fixedHeap(c), Least: traffic / 2}
}

// trusts reports whether identity.trusted_proxies contains the address.
func (i *Instance) trusts(peer netip.Addr) bool {
	return i.rules.guard.Identity().Trusts(peer)
}

// Reload prepares the upstream, the header style and the timeouts of bodies.
func (p *proxyServer) Reload(next *config.Config) (Change, error) {
	if next.Proxy.Upstream == nil {
		return Change{}, errors.New("app: the new configuration has no upstream: write proxy.upstream")
	}
	files, err := p.instance.upstreamCertificates(next)
	if err != nil {
		return Change{}, err
	}
	described, to, err := p.describe(next, files)
	if err != nil {
		return Change{}, err
	}
	commit, err := p.proxy.Prepare(described)
	if err != nil {
		return Change{}, err
	}
	return Change{
		Commit: func() {
			commit()
			p.upstream.Swap(to).CloseIdleConnections()
			if p.server != nil { // A source gives its first objects before the proxy serves; begin reads the log then.
				p.server.SetAccess(p.access.current(), p.instance.rules.report.KeyNames())
				p.server.Rebound(proxyBounds(p.instance.options.reloadedTables(next)))
			}
			p.access.retire()
		},
		Discard: to.CloseIdleConnections,
	}, nil
}

// files implements reopener.
func (p *proxyServer) files() []file {
	c := certificates{p.clients, p.upstream.Load().certificates}
	return c.files(p.instance.options.Log)
}

// Drain refuses new requests and waits for the requests in flight.
func (p *proxyServer) Drain(ctx context.Context) error {
	defer p.upstream.Load().CloseIdleConnections()
	switch {
	case p.server != nil:
		return p.server.Drain(ctx)
	case p.socket != nil:
		return p.socket.Close()
	}
	return nil
}

// Ready implements Component.
func (p *proxyServer) Ready() error {
	if !p.serves.Load() {
		return errors.New("the proxy is starting")
	}
	return nil
}

// Metrics implements Component.
func (p *proxyServer) Metrics(c *prom.Config) { c.Front = p.frontState }

func (p *proxyServer) frontState() prom.Front {
	s := p.socket.Stats()
	f := prom.Front{Connections: int64(s.Open), MaxConnections: int64(s.Limit), Accepted: s.Accepted, AcceptPauses: s.Pauses}
	f.AccessLinesDropped = p.access.lost()
	if p.clients != nil {
		f.CertificateExpires = p.clients.Expires()
	}
	return f
}

// Status implements Component.
func (p *proxyServer) Status(s *admin.Status) {
	s.Upstream = p.upstream.Load().URL.Redacted()
	if p.socket != nil {
		s.Listen.Proxy = p.socket.Addr().String()
	}
}
