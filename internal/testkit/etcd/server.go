package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is an etcd cluster of one member, or a member of StartCluster. Restart keeps its ports and its data.
type Server struct {
	process.Server

	members int         // Of its cluster; 0 means 1.
	name    string      // A unique name, which identifies the server that answers.
	secure  *tls.Config // How this package reaches the server; nil means plain text.
}

// Start runs a server until the test ends. Settings are flags of etcd, like
// "--auto-compaction-retention", "1". Start fails the test when etcd is not installed: a test
// that is skipped proves nothing.
//
// The server's ticks are a fifth of the default, so that it grants leases of 1 s. By default
// etcd grants no lease below 2 s.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, nil, settings)
}

// start runs a server; secure is nil for plain text.
func start(tb testing.TB, secure *tls.Config, settings []string) *Server {
	tb.Helper()
	process.Require(tb, "etcd-server etcd-client", "etcd", "etcdctl")
	return process.Retry(tb, "etcd does not start", func() (*Server, error) { return tryStart(tb, secure, settings) })
}

// newServer returns a server that is not running yet, and the address for its peers.
func newServer(tb testing.TB, secure *tls.Config) (s *Server, peer string, err error) {
	tb.Helper()
	port, err := process.FreePort(1)
	s = &Server{name: rand.Text(), secure: secure}
	s.Server = process.Server{TB: tb, Name: "etcd", Addr: process.Loopback(port), Dir: tb.TempDir(), Ready: s.ready}
	return s, process.Loopback(port + 1), err
}

func tryStart(tb testing.TB, secure *tls.Config, settings []string) (*Server, error) {
	tb.Helper()
	s, peer, err := newServer(tb, secure)
	if err != nil {
		return nil, err
	}
	client := s.scheme() + s.Addr
	s.Command = append([]string{
		"etcd", "--name", s.name, "--data-dir", s.dataDir(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", s.name + "=http://" + peer, "--initial-cluster-token", s.name,
		"--heartbeat-interval", "20", "--election-timeout", "200",
		"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
	}, settings...)
	err = s.Launch()
	return s, err
}

// scheme begins the URL for clients.
func (s *Server) scheme() string {
	if s.secure == nil {
		return "http://"
	}
	return "https://"
}

func (s *Server) dataDir() string { return filepath.Join(s.Dir, "data") }

// ready reads the names of the members, which needs a leader. It then checks that the
// server accepts a write.
func (s *Server) ready(int) error {
	reply, err := s.post("/v3/cluster/member/list", "{}")
	if err != nil {
		return err
	}
	if err := s.isMember(reply); err != nil {
		return err
	}
	_, err = s.post("/v3/kv/range", `{"key":"AA=="}`)
	return err
}

func (s *Server) post(path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), process.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.scheme()+s.Addr+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.secure}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 64<<10))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s to %s: %s: %s", path, s.Addr, reply.Status, text)
	}
	return text, err
}
