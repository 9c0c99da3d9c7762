package xds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/headgate/headgate/internal/readfile"
)

// maxFileBytes is far above any chain or bundle.
const maxFileBytes = 1 << 20

// load reads the files.
func (t *TLS) load() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := read(t.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("config/source/xds: %s has no certificate of an authority: write the certificates in PEM", t.CA)
		}
	}
	if t.Cert == "" {
		return c, nil
	}
	cert, err := read(t.Cert)
	if err != nil {
		return nil, err
	}
	key, err := read(t.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("config/source/xds: %s and %s are no pair: %w: use a certificate with its own key", t.Cert, t.Key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func read(path string) ([]byte, error) {
	text, err := readfile.Head(path, maxFileBytes+1)
	switch {
	case err != nil:
		return nil, fmt.Errorf("config/source/xds: %w: check that the file exists and that the process may read it", err)
	case len(text) > maxFileBytes:
		return nil, fmt.Errorf("config/source/xds: %s has more than %d bytes: write the path of a PEM file", path, maxFileBytes)
	}
	return text, nil
}
