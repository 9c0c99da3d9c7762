package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/headgate/headgate/readfile"
)

// maxFileBytes is far above any chain or bundle of authorities: the public ones
// together are a quarter of it.
const maxFileBytes = 1 << 20

// stamp tells one state of a file from another. A path that is a symbolic link
// stands for the file behind it.
type stamp struct{ info os.FileInfo }

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{} // Reading it will say why.
	}
	return stamp{info}
}

// same tells whether nothing speaks for a change. A file that cannot be looked at
// is never the same.
func (s stamp) same(other stamp) bool {
	return s.info != nil && other.info != nil && os.SameFile(s.info, other.info) &&
		s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// stampsOf gives those of several files; "" is no file and never changes.
func stampsOf(paths []string) []stamp {
	all := make([]stamp, 0, len(paths))
	for _, path := range paths {
		if path != "" {
			all = append(all, stampOf(path))
		}
	}
	return all
}

func sameStamps(a, b []stamp) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].same(b[i]) {
			return false
		}
	}
	return true
}

// read is called within reloader.attempt, which bounds the time.
func read(path string) ([]byte, error) {
	text, err := readfile.HeadNow(path, maxFileBytes+1)
	switch {
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("certs: %w: name the PEM file itself", err)
	case err != nil:
		return nil, fmt.Errorf("certs: %w: see that the file is there and may be read", err)
	case len(text) > maxFileBytes:
		return nil, fmt.Errorf("certs: %s has more than %d bytes: write a PEM file of certificates", path, maxFileBytes)
	}
	return text, nil
}

// pair reads a certificate chain and its key.
func pair(certPath, keyPath string) (*tls.Certificate, error) {
	cert, err := read(certPath)
	if err != nil {
		return nil, err
	}
	key, err := read(keyPath)
	if err != nil {
		return nil, err
	}
	if !holds(cert, "CERTIFICATE") {
		return nil, fmt.Errorf("certs: %s holds no certificate: write the chain in PEM, the server's own first", certPath)
	}
	if holds(key, "ENCRYPTED PRIVATE KEY") {
		return nil, fmt.Errorf("certs: the key in %s is encrypted: decrypt it, and protect the file by its mode", keyPath)
	}
	both, err := tls.X509KeyPair(cert, key)
	if err == nil && both.Leaf == nil { // A setting of the Go runtime leaves it out.
		both.Leaf, err = x509.ParseCertificate(both.Certificate[0])
	}
	if err != nil {
		return nil, fmt.Errorf("certs: %s and %s do not go together: %w: write the two that were issued together", certPath, keyPath, err)
	}
	return &both, nil
}

// holds tells whether PEM text has a block of a type.
func holds(text []byte, kind string) bool {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return false
		}
		if block.Type == kind {
			return true
		}
	}
}

// authorities reads a bundle of certificates.
func authorities(path string) (*x509.CertPool, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certs: %s holds no certificate of an authority: write them in PEM", path)
	}
	return pool, nil
}

// validity says what is wrong with the dates of a certificate, if anything is:
// those who have to trust it will refuse it, and serving it tells them why.
func validity(c *tls.Certificate, path string, now time.Time) error {
	switch leaf := c.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("certs: the certificate in %s has expired on %s: replace it", path, leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("certs: the certificate in %s begins on %s: see that the clock is right",
			path, leaf.NotBefore.UTC().Format(time.DateTime))
	default:
		return nil
	}
}

// bothOrNone checks the settings of a certificate and its key.
func bothOrNone(cert, key string) error {
	if (cert == "") != (key == "") {
		return errors.New("certs: a certificate needs its key, and a key its certificate: write both, or none")
	}
	return nil
}
