package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

// StartTLS is Start for a server that accepts only TLS over TCP, and only clients with a certificate of the CA. The
// files are in PEM. The server gets copies, because it refuses a key that another user owns.
func StartTLS(tb testing.TB, ca, cert, key string) *Server {
	tb.Helper()
	return start(tb, func(s *Server) []string {
		//nolint:dupword // The words stand for all databases and all users.
		const rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n"
		settings := []string{"ssl=on", "hba_file=" + s.put("hba", []byte(rules))}
		for name, path := range map[string]string{"ssl_ca_file": ca, "ssl_cert_file": cert, "ssl_key_file": key} {
			text, err := os.ReadFile(path)
			if err != nil {
				tb.Fatal(err)
			}
			settings = append(settings, name+"="+s.put(name, text))
		}
		return settings
	})
}

// put writes a file that only the server's user can read, and gives its path.
func (s *Server) put(name string, text []byte) string {
	s.TB.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // the test gives the names
		s.TB.Fatal(err)
	}
	if os.Getuid() == 0 {
		uid, gid := owner(s.TB)
		if err := os.Chown(path, uid, gid); err != nil {
			s.TB.Fatal(err)
		}
	}
	return path
}
