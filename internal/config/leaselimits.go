package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// LeaseLimits says where the root reads the limits of headgate ctl limit.
type LeaseLimits struct {
	// Etcd are host:port of the members of etcd. Default: those of the election, with its user and TLS.
	Etcd []string
	// Prefix begins the keys of the limits, and ends with a /. Default /headgate/pace/.
	Prefix string
	// User is the name for etcd's authentication, and PasswordFile the file with its password. Both are set, or neither.
	User, PasswordFile string
	// UseTLS encrypts the connections to etcd, with the files of TLS.
	UseTLS bool
	TLS    SourceTLS
}

const (
	leaseLimitsName = "limits"
	// maxLimitsPrefix is the longest prefix of package pace/etcd.
	maxLimitsPrefix    = 256
	leaseLimitsExample = "{etcd: [127.0.0.1:2379]}"
)

// leaseLimits reads where the limits of headgate ctl limit are. Without the section, l.Limits stays nil.
func (s *section) leaseLimits(l *Lease) {
	e := &LeaseLimits{Prefix: "/headgate/pace/"}
	parent := s.sub(s.declare(leaseLimitsName, field.Restart, "etcd with the limits that headgate ctl limit sets. A limit of the provider "+
		"mail is the capacity of the resource mail, and wins over the file. Default: only the file."), leaseLimitsExample)
	parent.declare("etcd", field.Restart, "host:port of the members of etcd. Default: those of election, with its user and tls.")
	e.Etcd = parent.hostPorts("etcd", "[etcd-1.example.com:2379, etcd-2.example.com:2379]", "etcd-1.example.com:2379")
	parent.declare("prefix", field.Restart, "Prefix of the keys, as in headgate ctl limit --prefix, with a / at its end.")
	parent.outline.field("prefix").text(e.Prefix, "/$", 1, maxLimitsPrefix)
	if v, ok := parent.textOf("prefix", &e.Prefix); ok && (!strings.HasSuffix(e.Prefix, "/") || len(e.Prefix) > maxLimitsPrefix) {
		parent.fault(v, quote(e.Prefix)+" is not valid",
			fmt.Sprintf("write at most %d bytes with a / at the end, like /headgate/pace/", maxLimitsPrefix))
	}
	parent.keep("prefix", e.Prefix)
	parent.etcdUser(&e.User, &e.PasswordFile)
	tls := parent.sourceTLS(&e.TLS)
	e.UseTLS = tls.begun()
	parent.end()
	if !parent.begun() {
		return
	}
	parent.limitsOfElection(e, l, tls)
	l.Limits = e
}

// limitsOfElection takes the connection of the election if the section has no etcd of its own.
func (s *section) limitsOfElection(e *LeaseLimits, l *Lease, tls *section) {
	if len(e.Etcd) > 0 || s.blamedAny("etcd") || s.blamedAt(s.self.path) {
		return
	}
	if l.Election == nil {
		s.missing("etcd", "write the members of etcd, like etcd: [127.0.0.1:2379], or lease.election")
		return
	}
	const without = "has no effect without etcd"
	if v, ok := s.given("user"); ok {
		s.fault(v, without, "remove it to use the user of lease.election, or write etcd")
	}
	if tls.begun() {
		s.unused(tls, without, "remove it to use the files of lease.election.tls, or write etcd")
	}
	election := l.Election
	e.Etcd, e.User, e.PasswordFile, e.UseTLS, e.TLS = election.Etcd, election.User, election.PasswordFile, election.UseTLS, election.TLS
}
