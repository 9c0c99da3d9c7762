package memcached

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a running Memcached server.
type Server struct {
	process.Server

	secure *tls.Config // nil for a server without TLS
}

// Start runs a server until the test ends. args are flags of memcached, like -m 1. Start fails
// the test when memcached is not installed: a test that is skipped proves nothing.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return startOn(tb, nil, args)
}

// StartTLS is Start for a server that accepts only TLS, from clients with a certificate of the
// authority. The files are PEM. client is the configuration of such a client.
func StartTLS(tb testing.TB, certFile, keyFile, caFile string, client *tls.Config) *Server {
	tb.Helper()
	const requireCertificate = ",ssl_verify_mode=2"
	return startOn(tb, client, []string{
		"-Z", "-o", "ssl_chain_cert=" + certFile + ",ssl_key=" + keyFile + ",ssl_ca_cert=" + caFile + requireCertificate,
	})
}

// startOn runs a server on a free port.
func startOn(tb testing.TB, secure *tls.Config, args []string) *Server {
	tb.Helper()
	return process.Retry(tb, "memcached does not start", func() (*Server, error) {
		port, err := process.FreePort(0)
		if err != nil {
			return nil, err
		}
		return start(tb, process.Loopback(port), secure, args)
	})
}

// StartAt is Start at a given address of loopback, for example that of a killed server.
func StartAt(tb testing.TB, addr string, args ...string) *Server {
	tb.Helper()
	return process.Retry(tb, "memcached does not start at "+addr, func() (*Server, error) { return start(tb, addr, nil, args) })
}

func start(tb testing.TB, addr string, secure *tls.Config, args []string) (*Server, error) {
	tb.Helper()
	process.Require(tb, "memcached", "memcached")
	who, err := user.Current() // Memcached refuses to run as root without the flag -u.
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: process.Server{TB: tb, Name: "memcached", Addr: addr, Dir: tb.TempDir()}, secure: secure}
	s.Command = append([]string{"memcached", "-l", host, "-p", port, "-U", "0", "-u", who.Username}, args...)
	s.Ready = s.ready
	err = s.Launch()
	return s, err
}

// ready checks the process number in the answer.
func (s *Server) ready(pid int) error {
	conn, err := net.DialTimeout("tcp", s.Addr, process.Timeout) //nolint:noctx // because the time is bounded
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if s.secure != nil {
		secure := s.secure.Clone()
		secure.ServerName = "127.0.0.1"
		conn = tls.Client(conn, secure)
	}
	if err := conn.SetDeadline(time.Now().Add(process.Timeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "STAT pid "+strconv.Itoa(pid) {
		err = fmt.Errorf("another server answers %q on %s", line, s.Addr)
	}
	return err
}
