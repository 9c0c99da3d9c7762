package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/accesslog"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/internal/certs"
	"github.com/headgate/headgate/internal/front/proxy"
	"github.com/headgate/headgate/internal/listen"
	"github.com/headgate/headgate/middleware/fields"
	"github.com/headgate/headgate/report/prom"
)

// proxyPart is the part that serves one upstream.
type proxyPart struct {
	instance *Instance
	access   *accesslog.Log // nil without an access log
	clients  *certs.Server  // nil without TLS
	proxy    *proxy.Proxy
	upstream atomic.Pointer[upstream]

	socket *listen.Listener // nil before Start
	server *proxy.Server    // nil before it serves
	serves atomic.Bool
}

// upstream is the way to the service; a reload replaces it.
type upstream struct {
	*proxy.Upstream

	certificates *certs.Client // nil without files for TLS
}

func newProxyPart(i *Instance, access *accessLog, files certificates) (*proxyPart, error) {
	p := &proxyPart{instance: i, clients: files.clients}
	if access != nil {
		p.access = access.opened
	}
	described, to, err := p.describe(i.options.Config, files.upstream)
	if err != nil {
		return nil, err
	}
	p.upstream.Store(to)
	p.proxy, err = proxy.New(described)
	return p, err
}

// describe makes what the proxy serves by, with the way to the upstream.
func (p *proxyPart) describe(c *config.Config, files *certs.Client) (proxy.Config, *upstream, error) {
	style, ok := fields.ParseStyle(string(c.Proxy.HeaderStyle))
	if !ok {
		return proxy.Config{}, nil, fmt.Errorf(
			"app: header_style %q is not known: write draft, x-ratelimit, draft03 or none", c.Proxy.HeaderStyle)
	}
	to, err := proxy.NewUpstream(proxy.UpstreamConfig{
		URL: c.Proxy.Upstream, Timeout: c.Proxy.UpstreamTimeout, BodyIdle: c.Proxy.BodyIdleTimeout, TLS: newestUpstream(files),
	})
	if err != nil {
		return proxy.Config{}, nil, err
	}
	deciding := p.instance.rules
	return proxy.Config{
		Guard: deciding.guard, Upstream: to.URL, Transport: to, Traffic: &deciding.report.Traffic,
		Style: style, BodyIdle: c.Proxy.BodyIdleTimeout, Log: p.instance.options.Log,
	}, &upstream{to, files}, nil
}

// Start opens the socket.
func (p *proxyPart) Start(ctx context.Context) (func(), error) {
	c := &p.instance.options.Config.Proxy
	socket, err := listen.Open(ctx, listen.Config{
		Address: c.Listen, Inherited: &p.instance.inherited,
		MaxConnections: c.MaxConnections, PerAddress: c.MaxConnectionsPerAddress, Exempt: p.trusts,
		ProxyProtocol: c.ProxyProtocol, ProxyProtocolUnix: c.ProxyProtocolUnix,
	})
	if err != nil {
		return nil, fmt.Errorf("app: proxy.listen: %w", err)
	}
	p.socket = socket
	return p.begin, nil
}

func (p *proxyPart) begin() {
	c, o := &p.instance.options.Config.Proxy, &p.instance.options
	var secured *tls.Config
	if p.clients != nil {
		secured = p.clients.Config()
	}
	p.server = proxy.NewServer(p.proxy, proxy.ServerConfig{
		ReadHeader: c.ReadHeaderTimeout, Idle: c.IdleTimeout, MaxHeader: int(c.MaxHeader), TLS: secured,
		MaxRequests: c.MaxRequests, MaxConnections: c.MaxConnections,
		Trusts:    p.trusts,
		RequestID: c.RequestID, Access: p.access, KeyNames: p.instance.rules.report.KeyNames(), Log: o.Log,
	})
	p.instance.serve(func() error { return p.server.Serve(p.socket) })
	p.serves.Store(true)
}

// trusts tells whether a peer is one of identity.trusted_proxies.
func (p *proxyPart) trusts(peer netip.Addr) bool {
	return p.instance.rules.guard.Identity().Trusts(peer)
}

// Reload prepares the upstream, the style of fields and the bounds of bodies.
func (p *proxyPart) Reload(next *config.Config) (Change, error) {
	if next.Proxy.Upstream == nil {
		return Change{}, errors.New("app: the configuration has no upstream any more: write proxy.upstream")
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
		},
		Discard: to.CloseIdleConnections,
	}, nil
}

// files implements reopener.
func (p *proxyPart) files() []file {
	c := certificates{p.clients, p.upstream.Load().certificates}
	return c.files(p.instance.options.Log)
}

// Drain takes no more requests, and lets those in flight end.
func (p *proxyPart) Drain(ctx context.Context) error {
	defer p.upstream.Load().CloseIdleConnections()
	switch {
	case p.server != nil:
		return p.server.Drain(ctx)
	case p.socket != nil:
		return p.socket.Close()
	}
	return nil
}

// Ready implements Part.
func (p *proxyPart) Ready() error {
	if !p.serves.Load() {
		return errors.New("the proxy does not serve yet")
	}
	return nil
}

// Metrics implements Part.
func (p *proxyPart) Metrics(c *prom.Config) { c.Front = p.frontState }

func (p *proxyPart) frontState() prom.Front {
	s := p.socket.Stats()
	f := prom.Front{Connections: int64(s.Open), MaxConnections: int64(s.Limit), Accepted: s.Accepted, AcceptPauses: s.Pauses}
	if p.access != nil {
		f.AccessLinesDropped = p.access.Dropped()
	}
	if p.clients != nil {
		f.CertificateExpires = p.clients.Expires()
	}
	return f
}

// Status implements Part.
func (p *proxyPart) Status(s *admin.Status) {
	s.Upstream = p.upstream.Load().URL.Redacted()
	if p.socket != nil {
		s.Listen.Proxy = p.socket.Addr().String()
	}
}
