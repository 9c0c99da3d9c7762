package open

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	nethttp "net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/source/http"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/readfile"
)

const (
	// maxFile bounds a file of certificates or headers, in bytes.
	maxFile = 1 << 20
	// maxHeaders bounds the headers of one file.
	maxHeaders = 64
)

// Source opens a source. It reads the files of certificates; the source connects when it is followed. The error names
// the field.
func Source(c *config.Source) (source.Source, error) {
	switch {
	case c == nil:
		return nil, errors.New("config: there is no source: write source in the configuration")
	case c.HTTP != nil:
		return openHTTP(c.HTTP)
	case c.Etcd != nil:
		return openEtcd(c.Etcd)
	default:
		return openPostgres(c.Postgres)
	}
}

// openHTTP opens a document at a URL.
func openHTTP(c *config.HTTPSource) (source.Source, error) {
	secure, err := Secure("source.http.tls", &c.TLS)
	if err != nil {
		return nil, err
	}
	described := http.Config{URL: c.URL, Interval: c.Interval, Timeout: c.Timeout, TLS: secure}
	if c.HeadersFile != "" {
		described.Header = func() (nethttp.Header, error) { return readHeaders(c.HeadersFile) }
		if _, err := described.Header(); err != nil {
			return nil, err
		}
	}
	return http.Open(described)
}

// readHeaders reads a file with a header on each line. No error has a value, which may be a secret.
func readHeaders(path string) (nethttp.Header, error) {
	const name = "source.http.headers_file"
	text, err := readfile.Head(path, maxFile+1)
	if err != nil {
		return nil, &config.FileError{Path: name, Err: err}
	}
	header := nethttp.Header{}
	lines := 0
	for line := range strings.Lines(string(text)) {
		lines++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		field, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(field) || !httpguts.ValidHeaderFieldValue(value) || len(header) == maxHeaders {
			return nil, &config.FileError{Path: name, Err: fmt.Errorf("line %d of %s is not a header: write lines like "+
				"Authorization: Bearer TOKEN, at most %d", lines, path, maxHeaders)}
		}
		header.Add(field, value)
	}
	return header, nil
}

// Secure gives the settings of TLS of a section, whose path is name. The error is a *config.FileError.
// The client's certificate is read again for each connection.
func Secure(name string, t *config.SourceTLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := readfile.Head(t.CA, maxFile)
		if err != nil {
			return nil, &config.FileError{Path: name + ".ca", Err: err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, &config.FileError{Path: name + ".ca", Err: errors.New("the file has no certificate in PEM: write the authority's")}
		}
	}
	if t.Cert == "" {
		return c, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := keyPair(t)
		if err != nil {
			return nil, &config.FileError{Path: name + ".cert", Err: err}
		}
		return pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return c, nil
}

func keyPair(t *config.SourceTLS) (*tls.Certificate, error) {
	cert, err := readfile.Head(t.Cert, maxFile)
	if err != nil {
		return nil, err
	}
	key, err := readfile.Head(t.Key, maxFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}
