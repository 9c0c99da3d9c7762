package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/config/field"
)

// EtcdSource is a prefix of the keys of etcd. PREFIX/customers/acme has the customer acme.
type EtcdSource struct {
	// Endpoints are the servers, as http://HOST:PORT or https://HOST:PORT, all of one scheme.
	Endpoints []string
	// Prefix begins with / and does not end with it. Default /headgate.
	Prefix string
	// User is the name for etcd's authentication, and PasswordFile the file with its password. Both are set, or
	// neither.
	User, PasswordFile string
	TLS                SourceTLS
}

func (e *EtcdSource) place() string { return strings.Join(e.Endpoints, ",") + " " + e.Prefix }

// PostgresSource is a table of PostgreSQL.
type PostgresSource struct {
	// URL is postgres://USER@HOST:PORT/DATABASE, with sslmode and files of TLS as parameters, and no password.
	URL string
	// PasswordFile is the file with the password. Default "": no password.
	PasswordFile string
	// Table is the prefix of the tables, with a schema or without. Default headgate.
	Table string
}

const (
	maxEndpoints = 16
	maxPrefix    = 256
	tablePattern = `^[a-z_][a-z0-9_]{0,39}(\.[a-z_][a-z0-9_]{0,39})?$`
)

// etcdSource reads the settings of a prefix of etcd.
func (s *section) etcdSource() (*section, *EtcdSource) {
	e := &EtcdSource{Prefix: "/headgate"}
	of := s.sub(s.declare(etcdName, field.Restart, "A prefix of keys in etcd: PREFIX/rules/NAME, PREFIX/plans/NAME and "+
		"PREFIX/customers/NAME."), "{endpoints: [http://127.0.0.1:2379]}")
	of.endpoints(e)
	of.declare("prefix", field.Restart, "Prefix of the keys, beginning with /.")
	of.outline.field("prefix").text(e.Prefix, "^/([^/]+/)*[^/]+$", 2, maxPrefix)
	if v, ok := of.textOf("prefix", &e.Prefix); ok && (len(e.Prefix) < 2 || len(e.Prefix) > maxPrefix || e.Prefix[0] != '/' ||
		strings.HasSuffix(e.Prefix, "/") || strings.Contains(e.Prefix, "//")) {
		of.fault(v, quote(e.Prefix)+" is not valid", "write it like /headgate, without / at its end")
	}
	of.keep("prefix", e.Prefix)
	of.declare("user", field.Restart, "User for etcd's authentication.")
	of.outline.field("user").text("", "", 1, maxCredential)
	v, ok := of.textOf("user", &e.User)
	of.credential(v, ok, e.User)
	of.keep("user", e.User)
	of.file(of.declare("password_file", field.Restart, "File with the password of user."), &e.PasswordFile)
	tls := of.sourceTLS(&e.TLS)
	of.end()
	if (e.User == "") != (e.PasswordFile == "") && !of.blamedAny("user", "password_file") {
		name := map[bool]string{true: "user", false: "password_file"}[e.User == ""]
		of.missing(name, "write user and password_file, or none of them")
	}
	if len(e.Endpoints) > 0 && tls.begun() && strings.HasPrefix(e.Endpoints[0], "http:") {
		s.unused(tls, "has no effect with endpoints of http", "remove it, or use endpoints of https")
	}
	return of, e
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

// postgresSource reads the settings of a table of PostgreSQL.
func (s *section) postgresSource() (*section, *PostgresSource) {
	const example = "postgres://headgate@db.example.com:5432/headgate?sslmode=verify-full"
	p := &PostgresSource{Table: "headgate"}
	of := s.sub(s.declare(postgresName, field.Restart, "Tables of PostgreSQL, which headgate ctl source init makes."), "{url: "+example+"}")
	of.declare("url", field.Restart, "Address of the database, without a password. sslmode and the files of TLS are parameters.")
	of.outline.field("url").written("", "^postgres(ql)?://[^\\s]+$")
	v, ok := of.scalar("url", "an address")
	switch {
	case ok:
		of.postgresURL(v, &p.URL, example)
	case of.begun() && !of.blamedAny("url") && !of.blamedAt(of.self.path):
		of.missing("url", "write it like "+example)
	}
	of.keep("url", p.URL)
	of.file(of.declare("password_file", field.Restart, "File with the password of the user."), &p.PasswordFile)
	of.declare("table", field.Restart, "Prefix of the names of the tables, like headgate or limits.headgate with a schema.")
	of.outline.field("table").written(p.Table, tablePattern)
	if v, ok := of.scalar("table", "a name"); ok {
		if !isTable(v.text()) {
			of.fault(v, quote(v.text())+" is not valid", "use small letters, digits and _, with a schema and a dot before it or without")
		} else {
			p.Table = v.text()
		}
	}
	of.keep("table", p.Table)
	of.end()
	return of, p
}

// postgresURL checks the address of a database.
func (s *section) postgresURL(v value, into *string, example string) {
	u, err := url.Parse(v.text())
	if err != nil {
		s.hide(v)
		s.fault(v, "is not an address", "write it like "+example)
		return
	}
	_, password := u.User.Password()
	inQuery := u.Query().Has("password") || u.Query().Has("sslpassword")
	if password || inQuery {
		s.hide(v)
	}
	switch {
	case password || inQuery:
		s.fault(v, "contains a password", "remove it, and write password_file")
	case u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "" || u.Fragment != "":
		s.fault(v, fmt.Sprintf("must begin with %s://", "postgres"), "write it like "+example)
	default:
		*into = v.text()
	}
}

// isTable reports whether a text has the form of tablePattern.
func isTable(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || len(part) > 40 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
	}
	return len(parts) <= 2
}
