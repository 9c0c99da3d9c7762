package open

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/readfile"
)

// maxPasswordBytes bounds a password file.
const maxPasswordBytes = 4096

// maxPEMBytes is far above the size of any chain or bundle of authorities.
const maxPEMBytes = 1 << 20

// readPassword reads a password file. field is the configuration field that names the file.
func readPassword(field, path string) (string, error) {
	password, err := readfile.Line(path, maxPasswordBytes, "password")
	if err != nil {
		return "", &config.FileError{Path: field, Err: err}
	}
	return password, nil
}

// secure gives the TLS settings of connections. The certificate is read again for each
// connection, so that it can be renewed.
func secure(t config.StoreTLS) (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := readPEM(t.CA)
		if err != nil {
			return nil, &config.FileError{Path: "store_tls.ca", Err: err}
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			err := errors.New(t.CA + " has no certificate in PEM form: name the file of the authority's certificate")
			return nil, &config.FileError{Path: "store_tls.ca", Err: err}
		}
	}
	if t.SkipName {
		skipName(secure)
	}
	if t.Cert == "" {
		return secure, nil
	}
	if _, err := certificate(t); err != nil {
		return nil, err
	}
	secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate(t) }
	return secure, nil
}

// skipName accepts a certificate of the authorities with any name.
func skipName(secure *tls.Config) {
	roots := secure.RootCAs
	secure.InsecureSkipVerify = true // VerifyConnection checks all but the name.
	secure.VerifyConnection = func(state tls.ConnectionState) error {
		chain := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			chain.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: chain})
		return err
	}
}

// readPEM reads a file of certificates, or of a key.
func readPEM(path string) ([]byte, error) {
	text, err := readfile.Head(path, maxPEMBytes+1)
	if err == nil && len(text) > maxPEMBytes {
		err = fmt.Errorf("%s has more than %d bytes: write a PEM file of certificates", path, maxPEMBytes)
	}
	return text, err
}

func certificate(t config.StoreTLS) (*tls.Certificate, error) {
	cert, err := readPEM(t.Cert)
	if err != nil {
		return nil, &config.FileError{Path: "store_tls.cert", Err: err}
	}
	key, err := readPEM(t.Key)
	if err != nil {
		return nil, &config.FileError{Path: "store_tls.key", Err: err}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		err = fmt.Errorf("%w: cert and key must be PEM files that belong together", err)
		return nil, &config.FileError{Path: "store_tls.cert", Err: err}
	}
	return &pair, nil
}
