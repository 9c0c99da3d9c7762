package config

import (
	"slices"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// maxAdminHosts bounds the host names of the admin listener.
const maxAdminHosts = 100

// admin reads the addresses of the admin and the health listener.
func (s *section) admin(a *Admin) {
	admin := s.sub(s.declare("admin", field.Taken, "Addresses of the admin and the health listener."), `{listen: "127.0.0.1:9902"}`)
	admin.adminListen(admin.declare("listen", field.Taken, "host:port of /metrics, /api/v1 and /debug/pprof; off closes the listener."),
		&a.Listen)
	admin.adminListen(admin.declare("health", field.Taken, "host:port of /healthz, /readyz and /metrics alone; off closes the "+
		"listener."), &a.Health)
	admin.adminHosts(admin.declare("hosts", field.Taken, "Host names, without port, by which scrapers may request /metrics, and with "+
		"auth: token everything; IP addresses and localhost are always accepted."), a)
	admin.auth(&a.Auth, nil)
	admin.console(admin.declare("console", field.Taken, "The console in a browser, at /console/ of listen: on, off, or {actions: true}, "+
		"which offers actions without auth too."), &a.Console)
	admin.certificate(&a.TLS)
	admin.history(a)
	admin.adminPeers(a)
	admin.end()
}

// Bounds of admin.history.
const (
	historySeries    = 2000
	maxHistorySeries = 20_000
)

// history reads how much of the past the instance keeps for /api/v1/history.
func (s *section) history(a *Admin) {
	own := s.sub(s.declare("history", field.Restart, "The counts of the last day in memory, for the console and ctl status --watch."),
		"{series: 2000}")
	own.count(own.declare("series", field.Restart, "Series that the instance keeps, 4 KiB each. A rule has up to 4, and a client of fair "+
		"share 3. Beyond, the quietest move into others. 0 keeps no history."), &a.HistorySeries, 0, maxHistorySeries)
	own.end()
}

// adminHosts reads the host names of Admin.
func (s *section) adminHosts(name string, a *Admin) {
	s.outline.field(name).entries().written("", namePattern)
	entries, _ := s.scalars(name, "[headgate.example.com]", maxAdminHosts)
	for _, v := range entries {
		host, port, ok := rule.ParseHost(v.text())
		switch {
		case !ok || host == "":
			s.fault(v, quote(v.text())+" is not a host name", "write it like headgate.example.com")
		case port != "":
			s.fault(v, quote(v.text())+" has a port", "hosts are compared without port: write "+quote(host))
		case slices.Contains(a.Hosts, host):
			s.fault(v, quote(v.text())+" appears twice", "remove one of them")
		default:
			a.Hosts = append(a.Hosts, host)
		}
	}
}
