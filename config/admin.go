package config

import (
	"slices"

	"github.com/headgate/headgate/rule"
)

// maxAdminHosts bounds the names that scrapers use; more are a list of everything.
const maxAdminHosts = 100

// admin reads where an instance tells of itself.
func (s *section) admin(a *Admin) {
	admin := s.sub("admin", `{listen: "127.0.0.1:9902"}`)
	admin.adminListen("listen", &a.Listen)
	admin.adminListen("health", &a.Health)
	admin.adminHosts("hosts", a)
	admin.end()
}

// adminHosts reads the names under which scrapers ask for metrics.
func (s *section) adminHosts(name string, a *Admin) {
	s.outline.field(name).entries().written("", namePattern)
	entries, _ := s.scalars(name, "[headgate.example.com]", maxAdminHosts)
	for _, v := range entries {
		host, port, ok := rule.ParseHost(v.text())
		switch {
		case !ok || host == "":
			s.fault(v, quote(v.text())+" is no host name", "write it like headgate.example.com")
		case port != "":
			s.fault(v, quote(v.text())+" has a port", "hosts are compared without port: write "+quote(host))
		case slices.Contains(a.Hosts, host):
			s.fault(v, quote(v.text())+" stands twice", "leave one out")
		default:
			a.Hosts = append(a.Hosts, host)
		}
	}
}
