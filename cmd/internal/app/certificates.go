package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/internal/config"
)

// certificates are the TLS files of the proxy. A nil field means that no file is configured.
type certificates struct {
	clients  *certs.Server
	upstream *certs.Client
}

// openCertificates reports the faults of both sides at once.
func (i *Instance) openCertificates(c *config.Config) (certificates, error) {
	upstream, err := i.upstreamCertificates(c)
	clients, fault := i.clientCertificates(c)
	return certificates{clients, upstream}, errors.Join(err, fault)
}

// upstreamCertificates returns nil when proxy.upstream_tls is not set.
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
		return nil, &config.SettingError{Path: "proxy.upstream_tls", Err: fmt.Errorf("app: proxy.upstream_tls: %w", err)}
	}
	return client, nil
}

// clientCertificates returns nil when proxy.tls is not set.
func (i *Instance) clientCertificates(c *config.Config) (*certs.Server, error) {
	return i.listenerCertificates(c.Proxy.TLS, "proxy.tls", partCertificates)
}

// listenerCertificates opens the files of a listener. It returns nil without files.
func (i *Instance) listenerCertificates(t config.TLS, setting, part string) (*certs.Server, error) {
	if t.Cert == "" {
		return nil, nil //nolint:nilnil // because no files are configured
	}
	server, err := certs.NewServer(certs.ServerConfig{
		Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA, Require: t.ClientAuth == config.ClientRequire, ClientName: t.ClientName,
		Log:      i.options.Log,
		Reloaded: i.certificatesReloaded(part),
	})
	if err != nil {
		return nil, &config.SettingError{Path: setting, Err: fmt.Errorf("app: %s: %w", setting, err)}
	}
	return server, nil
}

// files lists the files that each reload reads again.
func (c *certificates) files(log *slog.Logger) []file {
	var all []file
	if c.clients != nil {
		all = append(all, file{partCertificates, c.clients.Reload, func(err error) {
			log.Error("certificates not reloaded: the previous certificates stay in use", "error", err)
		}})
	}
	if c.upstream != nil {
		all = append(all, file{partUpstreamCerts, c.upstream.Reload, func(err error) {
			log.Error("upstream certificates not reloaded: the previous certificates stay in use", "error", err)
		}})
	}
	return all
}

// newestUpstream returns the function that configures TLS for new connections to the
// upstream, or nil for Go's defaults.
func newestUpstream(c *certs.Client) func() *tls.Config {
	if c == nil {
		return nil
	}
	return c.Config
}
