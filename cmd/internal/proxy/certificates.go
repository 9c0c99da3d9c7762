package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// Parts of a reload.
const (
	partCertificates  = "certificates"
	partUpstreamCerts = "upstream certificates"
)

// certificates are the TLS files of the proxy. A nil field means that no file is configured.
type certificates struct {
	clients  *certs.Server
	upstream *certs.Client
}

// openCertificates reports the faults of both sides at once.
func openCertificates(host *component.Host, c *config.Config) (certificates, error) {
	upstream, err := upstreamCertificates(host, c)
	clients, fault := certs.ForListener(c.Proxy.TLS, "proxy.tls", host.Log, host.Reloaded(partCertificates))
	return certificates{clients, upstream}, errors.Join(err, fault)
}

// upstreamCertificates returns nil when proxy.upstream_tls is not set.
func upstreamCertificates(host *component.Host, c *config.Config) (*certs.Client, error) {
	t := c.Proxy.UpstreamTLS
	if t == (config.UpstreamTLS{}) {
		return nil, nil //nolint:nilnil // because no files are configured
	}
	client, err := certs.NewClient(certs.ClientConfig{
		CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName, Log: host.Log,
		Reloaded: host.Reloaded(partUpstreamCerts),
	})
	if err != nil {
		return nil, &config.SettingError{Path: "proxy.upstream_tls", Err: fmt.Errorf("app: proxy.upstream_tls: %w", err)}
	}
	return client, nil
}

// files lists the files that each reload reads again.
func (c *certificates) files(log *slog.Logger) []component.File {
	var all []component.File
	if c.clients != nil {
		all = append(all, component.File{Name: partCertificates, Reopen: c.clients.Reload, Kept: func(err error) {
			log.Error("certificates not reloaded: the previous certificates stay in use", "error", err)
		}})
	}
	if c.upstream != nil {
		all = append(all, component.File{Name: partUpstreamCerts, Reopen: c.upstream.Reload, Kept: func(err error) {
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
