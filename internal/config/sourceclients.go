package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// EtcdSource is a prefix of the keys of etcd. PREFIX/customers/acme has the customer acme.
type EtcdSource struct {
	// Endpoints are the servers, as http://HOST:PORT or https://HOST:PORT, all of one scheme.
	Endpoints []string
	// Prefix begins with / and does not end with it. Default /headgate/config.
	Prefix string
	// User is the name for etcd's authentication, and PasswordFile the file with its password. Both are set, or
	// neither.
	User, PasswordFile string
	TLS                SourceTLS
}

func (e *EtcdSource) place() string { return sortedList(e.Endpoints) + " " + e.Prefix }

// sortedList gives names in one text, which does not depend on their order.
func sortedList(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }

// PostgresSource are the tables of a schema of PostgreSQL.
type PostgresSource struct {
	// Hosts are HOST:PORT of the server and its replicas, or FOLDER:PORT for a socket.
	Hosts          []string
	Database, User string
	// PasswordFile is the file with the password. Default "": no password.
	PasswordFile string
	// Schema has the tables. Default headgate.
	Schema string
	// UseTLS encrypts the connections, with the files of TLS.
	UseTLS bool
	TLS    SourceTLS
}

func (p *PostgresSource) place() string {
	return sortedList(p.Hosts) + "/" + p.Database + " " + p.Schema
}

const (
	maxEndpoints  = 16
	maxPrefix     = 250
	maxSchema     = 48
	maxIdentity   = 63
	schemaLetters = "abcdefghijklmnopqrstuvwxyz0123456789_"
)

// etcdSource reads the settings of a prefix of etcd.
func (s *section) etcdSource() (*section, *EtcdSource) {
	e := &EtcdSource{Prefix: "/headgate/config"}
	own := s.sub(s.declare(etcdName, field.Restart, "A prefix of keys in etcd: PREFIX/rules/NAME, PREFIX/plans/NAME and "+
		"PREFIX/customers/NAME."), "{endpoints: [http://127.0.0.1:2379]}")
	own.endpoints(e)
	own.declare("prefix", field.Restart, "Prefix of the keys, beginning with /.")
	own.outline.field("prefix").text(e.Prefix, "^/([^/]+/)*[^/]+$", 2, maxPrefix)
	if v, ok := own.textOf("prefix", &e.Prefix); ok && (len(e.Prefix) < 2 || len(e.Prefix) > maxPrefix || e.Prefix[0] != '/' ||
		strings.HasSuffix(e.Prefix, "/") || strings.Contains(e.Prefix, "//")) {
		own.fault(v, quote(e.Prefix)+" is not valid", "write it like /headgate/config, without / at its end")
	}
	own.keep("prefix", e.Prefix)
	own.declare("user", field.Restart, "User for etcd's authentication.")
	own.outline.field("user").text("", "", 1, maxCredential)
	v, ok := own.textOf("user", &e.User)
	own.credential(v, ok, e.User)
	own.keep("user", e.User)
	own.file(own.declare("password_file", field.Restart, "File with the password of user."), &e.PasswordFile)
	tls := own.sourceTLS(&e.TLS)
	own.end()
	if (e.User == "") != (e.PasswordFile == "") && !own.blamedAny("user", "password_file") {
		name := map[bool]string{true: "user", false: "password_file"}[e.User == ""]
		own.missing(name, "write user and password_file, or none of them")
	}
	if len(e.Endpoints) > 0 && tls.begun() && strings.HasPrefix(e.Endpoints[0], "http:") {
		s.unused(tls, "has no effect with endpoints of http", "remove it, or use endpoints of https")
	}
	return own, e
}

// endpoints reads the servers of etcd.
func (s *section) endpoints(e *EtcdSource) {
	const example = "[http://127.0.0.1:2379]"
	s.declare("endpoints", field.Restart, "Servers of etcd: http://HOST:PORT, or https://HOST:PORT, all of one kind.")
	s.outline.field("endpoints").entries().written("", "^https?://[^\\s@/]+$")
	entries, complete := s.scalars("endpoints", example, maxEndpoints)
	for _, v := range entries {
		u, err := url.Parse(v.text())
		switch {
		case err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" ||
			u.Path != "" || u.RawQuery != "":
			s.hide(v)
			s.fault(v, "must be http://HOST:PORT or https://HOST:PORT", "write it like "+example)
		case len(e.Endpoints) > 0 && !strings.HasPrefix(e.Endpoints[0], u.Scheme+":"):
			s.fault(v, "has another scheme than the endpoint before", "use http or https for all")
		case slices.Contains(e.Endpoints, v.text()):
			s.fault(v, "appears twice", "remove one of them")
		default:
			e.Endpoints = append(e.Endpoints, v.text())
		}
	}
	s.keep("endpoints", slices.Clone(e.Endpoints))
	if !complete && s.begun() && !s.blamedAny("endpoints") && !s.blamedAt(s.self.path) {
		s.missing("endpoints", "write the servers, like endpoints: "+example)
	}
}

// postgresSource reads the settings of a database.
func (s *section) postgresSource() (*section, *PostgresSource) {
	const example = "{hosts: [db.example.com:5432], database: headgate, user: headgate, password_file: db.password}"
	p := &PostgresSource{Schema: "headgate"}
	own := s.sub(s.declare(postgresName, field.Restart, "A schema of PostgreSQL, whose tables headgate ctl source init makes."), example)
	own.declare("hosts", field.Restart, "HOST:PORT of the server and its replicas, or FOLDER:PORT for a socket. The first one that can be "+
		"written is used.")
	p.Hosts = own.texts("hosts", "[db.example.com:5432]", maxEndpoints)
	own.keep("hosts", p.Hosts)
	if len(p.Hosts) == 0 && own.begun() && !own.blamedAny("hosts") && !own.blamedAt(own.self.path) {
		own.missing("hosts", "write the server, like hosts: [db.example.com:5432]")
	}
	for i, host := range p.Hosts {
		if port := host[strings.LastIndexByte(host, ':')+1:]; port == host || !isPort(port) {
			v := own.find(fmt.Sprintf("%s[%d]", own.pathOf("hosts"), i))
			own.fault(v, quote(host)+" is not HOST:PORT", "write it like db.example.com:5432")
		}
	}
	own.identifier(own.declare("database", field.Restart, "Name of the database."), &p.Database)
	own.identifier(own.declare("user", field.Restart, "User of the database."), &p.User)
	own.file(own.declare("password_file", field.Restart, "File with the password of the user."), &p.PasswordFile)
	own.declare("schema", field.Restart, "Schema that has the tables.")
	own.outline.field("schema").text(p.Schema, "^[a-z_][a-z0-9_]*$", 1, maxSchema)
	if v, ok := own.textOf("schema", &p.Schema); ok && (p.Schema == "" || len(p.Schema) > maxSchema ||
		strings.Trim(p.Schema, schemaLetters) != "" || p.Schema[0] >= '0' && p.Schema[0] <= '9' || strings.HasPrefix(p.Schema, "pg_")) {
		own.fault(v, quote(p.Schema)+" is not valid", "use 1 to 48 small letters, digits and _, which begin with neither a digit nor pg_")
	}
	own.keep("schema", p.Schema)
	p.UseTLS = own.sourceTLS(&p.TLS).begun()
	own.end()
	return own, p
}

// identifier reads a required name of a database.
func (s *section) identifier(name string, into *string) {
	s.outline.field(name).text("", "", 1, maxIdentity)
	v, ok := s.textOf(name, into)
	switch {
	case !ok && s.begun() && !s.blamedAny(name) && !s.blamedAt(s.self.path):
		s.missing(name, "write it, like "+name+": headgate")
	case ok && (*into == "" || len(*into) > maxIdentity || strings.Contains(*into, "\x00")):
		s.fault(v, quote(*into)+" is not valid", fmt.Sprintf("use 1 to %d bytes", maxIdentity))
	}
	s.keep(name, *into)
}

// isPort reports whether a text is the number of a port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
