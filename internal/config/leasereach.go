package config

import "strings"

// leaseReach finds leases that cannot arrive: those of rules in headgate proxy beside a root, those of a master that asks for a
// proof that its own group does not have, and those of a master without an address for clients. rules says that a rule has a lease.
func (s *section) leaseReach(c *Config, l *Lease, rules bool) {
	if c.Proxy.Upstream != nil && rules && len(l.Servers) == 0 && !s.blamedAny("servers") {
		s.fault(s.self, "rules with a lease have none in headgate proxy: headgate server gives these leases to its own rules",
			"write the section proxy with its rules in another file, with lease: {servers: [...]}")
	}
	e := l.Election
	if e == nil || s.blamedAny(electionName) || c.Server == nil || s.blamed("server") {
		return
	}
	if at := c.Server.GRPC.Address; e.Address == "" && (strings.HasPrefix(at, unixPrefix) || strings.HasPrefix(at, systemdWord)) {
		s.fault(s.keyOf(electionName), "the address for clients is missing, because server.grpc has no host and port",
			"write it like address: eu-1.example.com:8081")
	}
	auth := c.Server.GRPC.Auth
	shows := auth&AuthToken != 0 && l.TokenFile != "" || auth&AuthMTLS != 0 && l.TLS.Cert != ""
	if len(e.Servers) > 0 && rules && auth != 0 && !shows && !s.blamedAny("token_file", "tls") {
		s.fault(s.keyOf(electionName), "rules with a lease are clients of the master, which asks for a proof: auth of server.grpc is "+
			auth.String(), "write lease.token_file with the token of a caller with the scope lease, or lease.tls with its certificate")
	}
}
