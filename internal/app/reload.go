package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/store/open"
)

// errStopping says that an instance drains.
var errStopping = errors.New("app: the instance is being stopped: start another with the new configuration")

// Reload reads the configuration again and lets it take effect: rules, fair share,
// identity, upstream, header style and bounds of bodies at once; certificates and the
// access log's file are opened again. Counters, shares, bans and requests that wait go
// on. What needs a restart is told to the log. On an error the configuration stays as it was, and the
// error is told to the log, the status and the metrics too; certificates and the access log's file
// are opened again all the same.
func (i *Instance) Reload() error {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	if i.draining.Load() {
		return errStopping
	}
	began := time.Now()
	next, err := i.reload()
	i.reloadEnded(partConfiguration, err)
	i.reopen() // A faulty configuration does not stop the rotation of logs and certificates.
	if err != nil {
		i.tellFaults(err)
		return err
	}
	i.options.Log.Info("the configuration was reloaded", "rules", len(next.Rules), "took", time.Since(began).String())
	return nil
}

// reload changes everything or, on an error, nothing. reloading is held.
func (i *Instance) reload() (*config.Config, error) {
	if i.options.Load == nil {
		return nil, errors.New("app: this instance was started without a file to reload")
	}
	next, err := i.options.Load()
	if err != nil {
		return nil, err
	}
	started := i.options.Config
	switch {
	case next.Proxy.Upstream == nil:
		return nil, errors.New("app: the configuration has no upstream any more: write proxy.upstream")
	case started.StoreConfig().BlockShare < 0 && next.StoreConfig().BlockShare >= 0:
		return nil, errors.New("app: the first rule of sliding_log or sliding_window needs memory that is set apart at the start: " +
			"restart headgate, or use another algorithm")
	}
	described, err := open.GuardConfig(next, i.store)
	if err != nil {
		return nil, err
	}
	front, upstream, services, err := i.proxyConfig(next)
	if err != nil {
		return nil, err
	}
	var show func()
	described.Observer, show = i.report.PrepareConfig(&described)
	if err := i.guard.Reload(described); err != nil {
		if next.MaxMemory > started.MaxMemory {
			err = fmt.Errorf("%w: max_memory stays that of the start: restart headgate for more", err)
		}
		return nil, err
	}
	show()
	// New took the same settings from proxyConfig: what is wrong with them it has said.
	if err := i.proxy.Reload(front); err != nil {
		return nil, err
	}
	old := i.upstream
	i.upstream, i.services = upstream, services
	old.CloseIdleConnections()
	if i.options.Level != nil {
		i.options.Level.Set(next.Log.Level)
	}
	for _, setting := range needRestart(started, next) {
		i.options.Log.Warn("a setting takes effect at the next start", "setting", setting)
	}
	i.tellFairShare(fairShareOf(i.config.Swap(next)), next)
	return next, nil
}

// reopen opens the certificates and the access log's file again. What fails stays
// as it was, and the rest of a reload stands.
func (i *Instance) reopen() {
	if i.clients != nil {
		err := i.clients.Reload()
		i.reloadEnded(partCertificates, err)
		if err != nil {
			i.options.Log.Error("the certificates stay as they were", "error", err)
		}
	}
	if i.services != nil {
		err := i.services.Reload()
		i.reloadEnded(partUpstreamCerts, err)
		if err != nil {
			i.options.Log.Error("the certificates for the upstream stay as they were", "error", err)
		}
	}
	if i.access != nil {
		err := i.access.Reopen()
		i.reloadEnded(partAccessLog, err)
		if err != nil {
			i.options.Log.Error("the access log stays where it was", "error", err)
		}
	}
}

// tellFaults logs why a configuration did not take effect, a line for each fault.
func (i *Instance) tellFaults(err error) {
	const message = "the configuration was not reloaded: the one before stays in effect"
	faults, found := errors.AsType[config.Faults](err)
	if !found {
		i.options.Log.Error(message, "error", err)
		return
	}
	for _, f := range faults {
		i.options.Log.Error(message, "at", fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column),
			"field", f.Path, "problem", f.Problem, "fix", f.Fix)
	}
}

// restartOfLog leaves out of a section log what a reload takes.
func restartOfLog(l config.Log) config.Log {
	l.Level = 0
	return l
}

// needRestart lists the settings that differ from those of the start and cannot
// change while requests are being served.
func needRestart(started, next *config.Config) []string {
	var settings []string
	for _, setting := range [...]struct {
		name    string
		differs bool
	}{
		{"max_memory", started.MaxMemory != next.MaxMemory},
		{"on_full", started.OnFull != next.OnFull},
		{"log", restartOfLog(started.Log) != restartOfLog(next.Log)},
		{"admin", started.Admin.Listen != next.Admin.Listen || started.Admin.Health != next.Admin.Health},
		{"proxy.listen", started.Proxy.Listen != next.Proxy.Listen},
		{"proxy.tls", started.Proxy.TLS != next.Proxy.TLS},
		{"proxy.proxy_protocol", fmt.Sprint(started.Proxy.ProxyProtocol, started.Proxy.ProxyProtocolUnix) !=
			fmt.Sprint(next.Proxy.ProxyProtocol, next.Proxy.ProxyProtocolUnix)},
		{"proxy.read_header_timeout", started.Proxy.ReadHeaderTimeout != next.Proxy.ReadHeaderTimeout},
		{"proxy.idle_timeout", started.Proxy.IdleTimeout != next.Proxy.IdleTimeout},
		{"proxy.max_header", started.Proxy.MaxHeader != next.Proxy.MaxHeader},
		{"proxy.max_connections", started.Proxy.MaxConnections != next.Proxy.MaxConnections},
		{"proxy.max_connections_per_address", started.Proxy.MaxConnectionsPerAddress != next.Proxy.MaxConnectionsPerAddress},
		{"proxy.max_requests", started.Proxy.MaxRequests != next.Proxy.MaxRequests},
		{"proxy.request_id", started.Proxy.RequestID != next.Proxy.RequestID},
	} {
		if setting.differs {
			settings = append(settings, setting.name)
		}
	}
	return append(settings, started.StoreNeedsRestart(next)...)
}
