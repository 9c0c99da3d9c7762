package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/internal/front/proxy"
	"github.com/headgate/headgate/internal/listen"
	"github.com/headgate/headgate/report/prom"
)

// serve binds every address first, so that a start that fails has served nothing.
func (i *Instance) serve(ctx context.Context) error {
	c := i.options.Config
	registry, err := prom.NewRegistry(i.promConfig())
	if err != nil {
		return fmt.Errorf("app: metrics: %w", err)
	}
	bound := listeners{inherited: &i.inherited}
	i.socket = bound.front(ctx, &c.Proxy, i.trusts)
	adminSocket := bound.listen(ctx, "admin.listen", c.Admin.Listen)
	healthSocket := bound.listen(ctx, "admin.health", c.Admin.Health)
	if bound.failed != nil {
		bound.close()
		return bound.failed
	}
	i.addresses = admin.Addresses{Proxy: address(i.socket), Admin: address(adminSocket), Health: address(healthSocket)}
	i.front = proxy.NewServer(i.proxy, proxy.ServerConfig{
		ReadHeader: c.Proxy.ReadHeaderTimeout, Idle: c.Proxy.IdleTimeout, MaxHeader: int(c.Proxy.MaxHeader), TLS: i.secured,
		MaxRequests: c.Proxy.MaxRequests, MaxConnections: c.Proxy.MaxConnections,
		Trusts:    i.trusts,
		RequestID: c.Proxy.RequestID, Access: i.access, KeyNames: i.report.KeyNames(), Log: i.options.Log,
	})
	i.serving.Go(func() { i.ended(i.front.Serve(i.socket)) })
	metrics := prom.Handler(registry)
	i.serveSide(adminSocket, i.adminHandler(metrics))
	i.serveSide(healthSocket, i.healthHandler(metrics))
	return nil
}

// trusts tells whether a peer is one of identity.trusted_proxies.
func (i *Instance) trusts(peer netip.Addr) bool { return i.guard.Identity().Trusts(peer) }

// serveSide serves what tells of the instance, if it is to be served.
func (i *Instance) serveSide(ln net.Listener, h http.Handler) {
	if ln == nil {
		return
	}
	s := &http.Server{
		Handler: bounded(h), ReadHeaderTimeout: adminReadHeader, IdleTimeout: adminIdle, MaxHeaderBytes: adminHeader,
		ConnState: tellIdle,
		ErrorLog:  slog.NewLogLogger(i.options.Log.Handler(), slog.LevelWarn),
	}
	i.side = append(i.side, s)
	i.serving.Go(func() {
		if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			i.ended(fmt.Errorf("app: serving on %s: %w", ln.Addr(), err))
		}
	})
}

// ended notes the first server that ended by itself.
func (i *Instance) ended(err error) {
	if err == nil {
		return
	}
	select {
	case i.failed <- err:
	default:
	}
}

// listeners binds addresses until one fails.
type listeners struct {
	inherited *listen.Inherited
	all       []net.Listener
	failed    error
}

// listen gives nil for "", which is off.
func (l *listeners) listen(ctx context.Context, setting, at string) net.Listener {
	if at == "" || l.failed != nil {
		return nil
	}
	ln, err := listen.Open(ctx, listen.Config{
		Address: at, Inherited: l.inherited, MaxConnections: config.AdminConnections, WriteTimeout: adminWrite,
	})
	if err != nil {
		l.failed = fmt.Errorf("app: %s: %w", setting, err)
		return nil
	}
	l.all = append(l.all, ln)
	return ln
}

// front opens the proxy's own socket.
func (l *listeners) front(ctx context.Context, p *config.Proxy, trusts func(netip.Addr) bool) *listen.Listener {
	ln, err := listen.Open(ctx, listen.Config{
		Address: p.Listen, Inherited: l.inherited, MaxConnections: p.MaxConnections, PerAddress: p.MaxConnectionsPerAddress, Exempt: trusts,
		ProxyProtocol: p.ProxyProtocol, ProxyProtocolUnix: p.ProxyProtocolUnix,
	})
	if err != nil {
		l.failed = fmt.Errorf("app: proxy.listen: %w", err)
		return nil
	}
	l.all = append(l.all, ln)
	return ln
}

func (l *listeners) close() {
	for _, ln := range l.all {
		_ = ln.Close()
	}
}

func address(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}
