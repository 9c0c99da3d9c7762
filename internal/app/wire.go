package app

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/accesslog"
	"github.com/headgate/headgate/internal/certs"
	"github.com/headgate/headgate/internal/front/proxy"
	"github.com/headgate/headgate/middleware/fields"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/open"
)

// wire makes the parts, from the store outwards, and finds all that are at fault. Start and Probe share it.
func (i *Instance) wire() error {
	c := i.options.Config
	err := i.wireGuard(c)
	if err == nil && c.Proxy.Upstream != nil {
		err = i.wireProxy(c)
	} else {
		_, _, files := i.upstreamTLS(c)
		err = errors.Join(err, files)
	}
	secured, files := i.clientTLS(c)
	i.secured = secured
	return errors.Join(err, i.openAccessLog(c), files)
}

// wireGuard makes the store, the report and the guard.
func (i *Instance) wireGuard(c *config.Config) error {
	counted, err := c.ReportConfig(i.options.Log)
	if err != nil {
		return err
	}
	store, err := open.Store(c, i.storeOptions())
	if err != nil {
		return err
	}
	i.store = store
	i.report = report.New(counted)
	described, err := open.GuardConfig(c, store)
	if err != nil {
		return err
	}
	described.Observer = i.report.FollowConfig(&described)
	i.guard, err = guard.New(described)
	return err
}

// wireProxy makes what the proxy serves by.
func (i *Instance) wireProxy(c *config.Config) error {
	front, upstream, services, err := i.proxyConfig(c)
	if err != nil {
		return err
	}
	i.upstream, i.services = upstream, services
	i.proxy, err = proxy.New(front)
	return err
}

func (i *Instance) openAccessLog(c *config.Config) error {
	if c.Log.Access == config.AccessOff {
		return nil
	}
	format, ok := accesslog.ParseFormat(string(c.Log.Access))
	if !ok {
		return fmt.Errorf("app: log.access %q is not known: write off, json or combined", c.Log.Access)
	}
	if i.options.probe {
		if err := probeAccessLog(c.Log.AccessFile); err != nil {
			return fmt.Errorf("app: log.access_file: %w", err)
		}
		return nil
	}
	log, err := accesslog.Open(accesslog.Config{
		Format: format, File: c.Log.AccessFile, Output: i.options.AccessOutput, Report: i.options.Log,
	})
	if err != nil {
		return fmt.Errorf("app: log.access_file: %w", err)
	}
	i.access = log
	return nil
}

// proxyConfig makes what the proxy serves by, with the way to the upstream.
func (i *Instance) proxyConfig(c *config.Config) (proxy.Config, *proxy.Upstream, *certs.Client, error) {
	style, ok := fields.ParseStyle(string(c.Proxy.HeaderStyle))
	if !ok {
		return proxy.Config{}, nil, nil, fmt.Errorf(
			"app: header_style %q is not known: write draft, x-ratelimit, draft03 or none", c.Proxy.HeaderStyle)
	}
	services, newest, err := i.upstreamTLS(c)
	if err != nil {
		return proxy.Config{}, nil, nil, err
	}
	upstream, err := proxy.NewUpstream(proxy.UpstreamConfig{
		URL: c.Proxy.Upstream, Timeout: c.Proxy.UpstreamTimeout, BodyIdle: c.Proxy.BodyIdleTimeout, TLS: newest,
	})
	if err != nil {
		return proxy.Config{}, nil, nil, err
	}
	return proxy.Config{
		Guard: i.guard, Upstream: upstream.URL, Transport: upstream, Traffic: &i.report.Traffic,
		Style: style, BodyIdle: c.Proxy.BodyIdleTimeout, Log: i.options.Log,
	}, upstream, services, nil
}

// upstreamTLS gives nil for an upstream without TLS of its own settings.
func (i *Instance) upstreamTLS(c *config.Config) (*certs.Client, func() *tls.Config, error) {
	t := c.Proxy.UpstreamTLS
	if t == (config.UpstreamTLS{}) {
		return nil, nil, nil
	}
	client, err := certs.NewClient(certs.ClientConfig{
		CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName, Log: i.options.Log,
		Reloaded: i.certificatesReloaded(partUpstreamCerts),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("app: proxy.upstream_tls: %w", err)
	}
	return client, client.Config, nil
}

// clientTLS gives nil for clients without TLS.
func (i *Instance) clientTLS(c *config.Config) (*tls.Config, error) {
	t := c.Proxy.TLS
	if t.Cert == "" {
		return nil, nil //nolint:nilnil // No configuration is what net/http takes for no TLS.
	}
	server, err := certs.NewServer(certs.ServerConfig{
		Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA, Require: t.ClientAuth == config.ClientRequire, Log: i.options.Log,
		Reloaded: i.certificatesReloaded(partCertificates),
	})
	if err != nil {
		return nil, fmt.Errorf("app: proxy.tls: %w", err)
	}
	i.clients = server
	return server.Config(), nil
}
