package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/readfile"
)

// maxSecretBytes bounds a file with a password.
const maxSecretBytes = 4096

// maxPEMBytes is far above any chain or bundle of authorities.
const maxPEMBytes = 1 << 20

// readSecret reads a file with a password and, perhaps, the end of its line. field is
// what names the file.
func readSecret(field, path string) (Secret, error) {
	text, err := readfile.Head(path, maxSecretBytes+1)
	if err != nil {
		return "", &FileError{field, err}
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case len(text) > maxSecretBytes:
		err = fmt.Errorf("%s has more than %d bytes: write the password alone into it", path, maxSecretBytes)
	case secret == "":
		err = fmt.Errorf("%s is empty: write the password into it", path)
	case strings.ContainsAny(secret, "\r\n"):
		err = fmt.Errorf("%s has several lines: write the password alone into it", path)
	}
	if err != nil {
		return "", &FileError{field, err}
	}
	return Secret(secret), nil
}

// client gives what connections are made with. The certificate is read again for
// each, so that it can be renewed.
func (t StoreTLS) client() (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := readPEM(t.CA)
		if err != nil {
			return nil, &FileError{"store_tls.ca", err}
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			err := errors.New(t.CA + " has no certificate in PEM form: name the file of the authority's certificate")
			return nil, &FileError{"store_tls.ca", err}
		}
	}
	if t.Cert == "" {
		return secure, nil
	}
	if _, err := t.certificate(nil); err != nil {
		return nil, err
	}
	secure.GetClientCertificate = t.certificate
	return secure, nil
}

// readPEM reads a file of certificates, or of a key.
func readPEM(path string) ([]byte, error) {
	text, err := readfile.Head(path, maxPEMBytes+1)
	if err == nil && len(text) > maxPEMBytes {
		err = fmt.Errorf("%s has more than %d bytes: write a PEM file of certificates", path, maxPEMBytes)
	}
	return text, err
}

func (t StoreTLS) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := readPEM(t.Cert)
	if err != nil {
		return nil, &FileError{"store_tls.cert", err}
	}
	key, err := readPEM(t.Key)
	if err != nil {
		return nil, &FileError{"store_tls.key", err}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &FileError{"store_tls.cert", fmt.Errorf("%w: cert and key must be PEM files that belong together", err)}
	}
	return &pair, nil
}
