package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/field"
)

// LeaseElection has the settings of a group of servers, of which one is the master.
type LeaseElection struct {
	// Etcd are host:port of the members of etcd.
	Etcd []string
	// User is the name for etcd's authentication, and PasswordFile the file with its password. Both are set, or neither.
	User, PasswordFile string
	// UseTLS encrypts the connections to etcd, with the files of TLS.
	UseTLS bool
	TLS    SourceTLS
	// Group is the name of the group.
	Group string
	// Address is host:port of this server, as clients have it in their lists. Default "": the host of server.grpc, or the name of
	// the machine, and the port of server.grpc.
	Address string
	// Servers are host:port of all servers of the group, as clients have them. Rules with a lease get theirs through them.
	Servers []string
	// TTL is the time after which another server takes over. Default 5s.
	TTL time.Duration
}

const (
	defaultElectionTTL       = 5 * time.Second
	minElectionTTL           = time.Second
	maxElectionTTL           = 5 * time.Minute
	maxGroup                 = 128
	groupLetters             = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	electionExample          = "{etcd: [127.0.0.1:2379], group: eu}"
	electionName, groupField = "election", "group"
)

// leaseElection reads the settings of a group. Without the section, l.Election stays nil.
func (s *section) leaseElection(l *Lease) {
	e := &LeaseElection{TTL: defaultElectionTTL}
	p := s.sub(s.declare(electionName, field.Restart, "A group of servers, of which etcd elects the master. Default: this server is "+
		"alone."), electionExample)
	p.declare(etcdName, field.Restart, "host:port of the members of etcd.")
	e.Etcd = p.hostPorts(etcdName, "[etcd-1.example.com:2379, etcd-2.example.com:2379]", "etcd-1.example.com:2379")
	if len(e.Etcd) == 0 && p.begun() && !p.blamedAny(etcdName) && !p.blamedAt(p.self.path) {
		p.missing(etcdName, "write the members of etcd, like etcd: [127.0.0.1:2379]")
	}
	p.electionGroup(e)
	p.declare("address", field.Restart, "host:port of this server, as clients have it in their lists. Default: the host of server.grpc, "+
		"or else the name of the machine, and the port of server.grpc.")
	p.outline.field("address").text("", "", 1, maxCredential)
	if v, ok := p.textOf("address", &e.Address); ok {
		p.hostPort(v, e.Address, "eu-1.example.com:8081")
	}
	p.keep("address", e.Address)
	p.declare("servers", field.Restart, "host:port of all servers of the group, for rules with a lease: their leases come from the "+
		"master.")
	e.Servers = p.hostPorts("servers", "[eu-1.example.com:8081, eu-2.example.com:8081]", "eu-1.example.com:8081")
	p.duration(p.declare("ttl", field.Restart, "Time after which another server takes over from a master that failed, in whole seconds."),
		&e.TTL, minElectionTTL, maxElectionTTL)
	p.etcdUser(&e.User, &e.PasswordFile)
	e.UseTLS = p.sourceTLS(&e.TLS).begun()
	p.end()
	if e.TTL%time.Second != 0 && !p.blamedAny("ttl") {
		if v, ok := p.given("ttl"); ok {
			p.fault(v, field.FormatDuration(e.TTL)+" is no whole number of seconds", "write it like 5s")
		}
	}
	if p.begun() {
		l.Election = e
	}
}

// electionGroup reads the name of the group.
func (s *section) electionGroup(e *LeaseElection) {
	s.declare(groupField, field.Restart, "Name of the group: the servers with the same name and the same etcd.")
	s.outline.field(groupField).text("", "^[A-Za-z0-9._-]+$", 1, maxGroup)
	v, ok := s.textOf(groupField, &e.Group)
	switch {
	case !ok && s.begun() && !s.blamedAny(groupField) && !s.blamedAt(s.self.path):
		s.missing(groupField, "write the name of the group, like group: eu")
	case ok && (e.Group == "" || len(e.Group) > maxGroup || strings.Trim(e.Group, groupLetters) != ""):
		s.fault(v, quote(e.Group)+" is not valid", fmt.Sprintf("use 1 to %d letters, digits and . _ -", maxGroup))
	}
	s.keep(groupField, e.Group)
}

// etcdUser reads the user of etcd.
func (s *section) etcdUser(user, passwordFile *string) {
	s.declare("user", field.Restart, "User for etcd's authentication.")
	s.outline.field("user").text("", "", 1, maxCredential)
	v, ok := s.textOf("user", user)
	s.credential(v, ok, *user)
	s.keep("user", *user)
	s.file(s.declare("password_file", field.Restart, "File with the password of user."), passwordFile)
	if (*user == "") != (*passwordFile == "") && !s.blamedAny("user", "password_file") {
		name := map[bool]string{true: "user", false: "password_file"}[*user == ""]
		s.missing(name, "write user and password_file, or none of them")
	}
}

// hostPorts reads a list of host:port.
func (s *section) hostPorts(name, example, one string) []string {
	all := s.texts(name, example, maxEndpoints)
	for i, text := range all {
		v := s.find(fmt.Sprintf("%s[%d]", s.pathOf(name), i))
		if s.hostPort(v, text, one) && slices.Contains(all[:i], text) {
			s.fault(v, "appears twice", "remove one of them")
		}
	}
	s.keep(name, slices.Clone(all))
	return all
}

// hostPort checks a host:port.
func (s *section) hostPort(v value, text, example string) (ok bool) {
	a, offset, problem := parseAddress(text)
	switch {
	case problem != "":
		s.faultAt(v, offset, problem, "write it like "+example)
	case a.host == "" || a.port == 0:
		s.fault(v, quote(text)+" has no host or no port", "write it like "+example)
	default:
		return true
	}
	return false
}
