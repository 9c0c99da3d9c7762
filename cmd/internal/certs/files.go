package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/headgate/headgate/internal/readfile"
)

// maxFileBytes is far above any chain or bundle. All public authorities together need a
// quarter of it.
const maxFileBytes = 1 << 20

// stamp identifies one state of a file. For a symbolic link, it is the state of the target.
type stamp struct{ info os.FileInfo }

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{} // Reading the file will give the cause.
	}
	return stamp{info}
}

// same reports whether both stamps show the same state. A file without a stamp always counts
// as changed.
func (s stamp) same(other stamp) bool {
	return s.info != nil && other.info != nil && os.SameFile(s.info, other.info) &&
		s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// stampsOf returns the stamps of several files. It skips "".
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

// read reads a file. The caller is reloader.attempt, which bounds the time.
func read(path string) ([]byte, error) {
	text, err := readfile.HeadNow(path, maxFileBytes+1)
	switch {
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("certs: %w: write the path of the PEM file itself", err)
	case err != nil:
		return nil, fmt.Errorf("certs: %w: check that the file exists and that the process may read it", err)
	case len(text) > maxFileBytes:
		return nil, fmt.Errorf("certs: %s has more than %d bytes: write the path of a PEM file", path, maxFileBytes)
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
	if !hasBlock(cert, "CERTIFICATE") {
		return nil, fmt.Errorf("certs: %s has no certificate: write the chain in PEM, with the server's certificate first", certPath)
	}
	if hasBlock(key, "ENCRYPTED PRIVATE KEY") {
		return nil, fmt.Errorf("certs: the key in %s is encrypted: decrypt the key, and restrict the file mode", keyPath)
	}
	both, err := tls.X509KeyPair(cert, key)
	if err == nil && both.Leaf == nil { // A GODEBUG setting of Go omits Leaf.
		both.Leaf, err = x509.ParseCertificate(both.Certificate[0])
	}
	if err != nil {
		return nil, fmt.Errorf("certs: %s and %s do not match: %w: use a certificate with its own key", certPath, keyPath, err)
	}
	return &both, nil
}

// hasBlock reports whether PEM text has a block of the given type.
func hasBlock(text []byte, kind string) bool {
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
		return nil, fmt.Errorf("certs: %s has no certificate of an authority: write the certificates in PEM", path)
	}
	return pool, nil
}

// validity returns an error for a certificate outside its validity period. The certificate is
// still served, because the clients that refuse it then see the cause.
func validity(c *tls.Certificate, path string, now time.Time) error {
	switch leaf := c.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("certs: the certificate in %s expired on %s: replace the certificate",
			path, leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("certs: the certificate in %s is not valid before %s: check the clock of this machine",
			path, leaf.NotBefore.UTC().Format(time.DateTime))
	default:
		return nil
	}
}

// bothOrNone checks that a certificate and its key are both set, or neither.
func bothOrNone(cert, key string) error {
	if (cert == "") != (key == "") {
		return errors.New("certs: a certificate and its key belong together: set both, or neither")
	}
	return nil
}
