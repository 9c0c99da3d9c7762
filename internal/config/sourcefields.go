package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/field"
)

const sourceName = "source"

// Source is a place outside the file that has rules, plans and customers. One of Etcd, HTTP and Postgres is set.
// Package cmd/internal/source/open opens it. Each change of these settings but WithoutState needs a restart.
type Source struct {
	Etcd     *EtcdSource
	HTTP     *HTTPSource
	Postgres *PostgresSource
	// Cache is the file that keeps what is in force. Default "": no file.
	Cache string
	// WithoutState says what happens to requests while the objects of the source are not known. Default RefuseWithoutState.
	WithoutState WithoutState
}

// WithoutState says what happens to requests while the objects of a source are not known: after a start without an answer of the
// source and without a usable cache, and while the source lacks an object that the file needs.
type WithoutState uint8

const (
	// RefuseWithoutState refuses them, with the reason source_unavailable or plan_missing.
	RefuseWithoutState WithoutState = iota
	// AllowWithoutState has the file alone decide. Requests of customers whose plan is not known are refused all the same.
	AllowWithoutState
)

// withoutStateNames has the words of the file, in the order of the constants.
var withoutStateNames = [...]string{"refuse", "allow"}

// String gives the word of the file.
func (w WithoutState) String() string {
	return withoutStateNames[min(int(w), len(withoutStateNames)-1)]
}

// Kind gives the word of the source: etcd, http or postgres.
func (s *Source) Kind() string {
	switch {
	case s.Etcd != nil:
		return etcdName
	case s.HTTP != nil:
		return httpName
	default:
		return postgresName
	}
}

// Place gives the address of the source, without secrets, for people and to tell caches apart. A digest stands for the
// query of a URL, which may have a token.
func (s *Source) Place() string {
	switch {
	case s.Etcd != nil:
		return s.Etcd.place()
	case s.HTTP != nil:
		return s.HTTP.place()
	default:
		return s.Postgres.place()
	}
}

// SourceTLS has the files for TLS to a source.
type SourceTLS struct {
	// CA is a PEM file of authorities that replace those of the system.
	CA string
	// Cert and Key are PEM files of a client certificate. Both are set, or neither.
	Cert, Key string
	// ServerName is the name in the source's certificate. Default the host.
	ServerName string
}

// HTTPSource is one document at a URL, which is read again in each interval.
type HTTPSource struct {
	// URL is http or https, without a user.
	URL string
	// Interval is the time from one read to the next. Default 5s.
	Interval time.Duration
	// Timeout bounds one read. Default 10s.
	Timeout time.Duration
	// HeadersFile has a header on each line, such as Authorization. Default "".
	HeadersFile string
	TLS         SourceTLS
}

// place gives the URL without its query.
func (h *HTTPSource) place() string {
	at, query, found := strings.Cut(h.URL, "?")
	if !found {
		return at
	}
	sum := sha256.Sum256([]byte(query))
	return at + "?" + hex.EncodeToString(sum[:4])
}

const (
	etcdName     = "etcd"
	httpName     = "http"
	postgresName = "postgres"

	leastInterval  = time.Second
	mostInterval   = time.Hour
	normalInterval = 5 * time.Second
	leastReadTime  = 100 * time.Millisecond
	mostReadTime   = 10 * time.Minute
	normalReadTime = 10 * time.Second
)

// sourceOfObjects reads where further rules, plans and customers are.
func (s *section) sourceOfObjects(c *Config) {
	all := s.sub(s.declare(sourceName, field.Restart, "A place that has further rules, plans and customers, one object each. The file "+
		"has at most one of etcd, http and postgres."), "{http: {url: https://config.example.com/headgate.yaml}}")
	all.settable = false // A source is either complete in the file, or not there.
	read := &Source{}
	etcd, fromEtcd := all.etcdSource()
	http, fromHTTP := all.httpSource()
	postgres, fromPostgres := all.postgresSource()
	all.file(all.declare("cache", field.Restart, "File that keeps what is in force, mode 0600. An instance that starts without the "+
		"source serves from it."), &read.Cache)
	oneOf(all, all.declare("without_state", field.Taken, "What happens to requests before the source has given its objects, without a "+
		"usable cache: refuse them with 503, or allow what the file alone allows."), &read.WithoutState,
		choicesOf([]WithoutState{RefuseWithoutState, AllowWithoutState}))
	all.end()
	if !all.begun() {
		return
	}
	s.deferred, s.sourced = !s.complete, true
	n := 0
	for _, one := range [...]struct {
		section *section
		set     func()
	}{
		{etcd, func() { read.Etcd = fromEtcd }},
		{http, func() { read.HTTP = fromHTTP }},
		{postgres, func() { read.Postgres = fromPostgres }},
	} {
		if !one.section.begun() {
			continue
		}
		if n++; n > 1 && one.section.self.node != nil {
			s.fault(one.section.self, "is a second source", "write one of etcd, http and postgres")
		}
		one.set()
	}
	if n == 0 && !all.blamedAny(etcdName, httpName, postgresName) && !all.blamedAt(all.self.path) {
		all.missing(httpName, "write one of etcd, http and postgres, like http: {url: https://config.example.com/headgate.yaml}")
		return
	}
	c.Source = read
}

// httpSource reads the settings of a document.
func (s *section) httpSource() (*section, *HTTPSource) {
	h := &HTTPSource{Interval: normalInterval, Timeout: normalReadTime}
	parent := s.sub(s.declare(httpName, field.Restart, "One document at a URL, with rules, plans and customers."),
		"{url: https://config.example.com/headgate.yaml}")
	parent.declare("url", field.Restart, "URL of the document, http or https. Redirects stay on its host.")
	parent.sourceURL("url", &h.URL)
	parent.duration(parent.declare("interval", field.Restart, "Time from one read to the next, a tenth more or less."), &h.Interval,
		leastInterval, mostInterval)
	parent.duration(parent.declare("timeout", field.Restart, "Time limit of one read."), &h.Timeout, leastReadTime, mostReadTime)
	parent.file(parent.declare("headers_file", field.Restart, "File with headers of the requests, one on each line, like Authorization: "+
		"Bearer TOKEN. Each read reads the file again."), &h.HeadersFile)
	tls := parent.sourceTLS(&h.TLS)
	parent.end()
	if tls.begun() && !parent.blamedAny("url") && h.URL != "" && h.URL[:len("http:")] == "http:" {
		s.unused(tls, "has no effect with a URL of http", "remove it, or use a URL of https")
	}
	return parent, h
}

// sourceURL reads the URL of a document.
func (s *section) sourceURL(name string, into *string) {
	const fix = "write it like https://config.example.com/headgate.yaml"
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written("", "^https?://[^\\s@]+$")
	v, ok := s.scalar(name, "a URL")
	switch {
	case !ok && s.begun():
		if !s.blamedAny(name) && !s.blamedAt(s.self.path) {
			s.missing(name, fix)
		}
		return
	case !ok:
		return
	}
	u, err := url.Parse(v.text())
	if err != nil || u.User != nil {
		s.hide(v)
	}
	switch {
	case err != nil:
		s.fault(v, "is not a URL", fix)
	case u.User != nil:
		s.fault(v, "contains a user or a password", "remove it, and write an Authorization header in headers_file")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		s.fault(v, "must be a URL of http or https", fix)
	case u.Fragment != "":
		s.fault(v, "has a fragment, which no server sees", "remove the # and the text after it")
	default:
		if _, problem := upstreamAddress(u); problem != "" {
			s.fault(v, problem, fix)
			return
		}
		*into = v.text()
	}
}

// sourceTLS reads the files for TLS to a source.
func (s *section) sourceTLS(t *SourceTLS) *section {
	tls := s.sub(s.declare("tls", field.Restart, "Files for TLS to the source."), "{ca: ca.crt}")
	tls.file(tls.declare("ca", field.Restart, "PEM file of authorities that replace those of the system."), &t.CA)
	tls.declare("cert", field.Restart, "PEM file of the client certificate for the source.")
	tls.declare("key", field.Restart, "PEM file of that certificate's key.")
	tls.pair(&t.Cert, &t.Key)
	tls.declare("server_name", field.Restart, "Name in the source's certificate. Default: its host.")
	tls.serverName("server_name", &t.ServerName)
	tls.end()
	tls.checkPair(t.Cert, t.Key)
	return tls
}
