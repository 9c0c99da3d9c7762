package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/certs"
)

// certificates are the files of a proxy for TLS; nil is none.
type certificates struct {
	clients  *certs.Server
	upstream *certs.Client
}

// openCertificates finds both that are at fault.
func (i *Instance) openCertificates(c *config.Config) (certificates, error) {
	upstream, err := i.upstreamCertificates(c)
	clients, fault := i.clientCertificates(c)
	return certificates{clients, upstream}, errors.Join(err, fault)
}

// upstreamCertificates gives nil for an upstream without TLS of its own settings.
func (i *Instance) upstreamCertificates(c *config.Config) (*certs.Client, error) {
	t := c.Proxy.UpstreamTLS
	if t == (config.UpstreamTLS{}) {
		return nil, nil //nolint:nilnil // because no files are configured
	}
	client, err := certs.NewClient(certs.ClientConfig{
		CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName, Log: i.options.Log,
		Reloaded: i.certificatesReloaded(partUpstreamCerts),
	})
	if err != nil {
		return nil, fmt.Errorf("app: proxy.upstream_tls: %w", err)
	}
	return client, nil
}

// clientCertificates gives nil for clients without TLS.
func (i *Instance) clientCertificates(c *config.Config) (*certs.Server, error) {
	t := c.Proxy.TLS
	if t.Cert == "" {
		return nil, nil //nolint:nilnil // because no files are configured
	}
	server, err := certs.NewServer(certs.ServerConfig{
		Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA, Require: t.ClientAuth == config.ClientRequire, Log: i.options.Log,
		Reloaded: i.certificatesReloaded(partCertificates),
	})
	if err != nil {
		return nil, fmt.Errorf("app: proxy.tls: %w", err)
	}
	return server, nil
}

// files are opened anew at each reload.
func (c *certificates) files(log *slog.Logger) []file {
	var all []file
	if c.clients != nil {
		all = append(all, file{partCertificates, c.clients.Reload, func(err error) {
			log.Error("the certificates stay as they were", "error", err)
		}})
	}
	if c.upstream != nil {
		all = append(all, file{partUpstreamCerts, c.upstream.Reload, func(err error) {
			log.Error("the certificates for the upstream stay as they were", "error", err)
		}})
	}
	return all
}

// newestUpstream gives the TLS of new connections to the upstream; nil is Go's defaults.
func newestUpstream(c *certs.Client) func() *tls.Config {
	if c == nil {
		return nil
	}
	return c.Config
}
