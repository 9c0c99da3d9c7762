package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is an etcd cluster of one member, or a member of StartCluster. Its methods are safe for concurrent use. Methods
// that can fail the test must be called from the test's goroutine.
type Server struct {
	// Addr is the address for clients: 127.0.0.1 and the server's own port.
	Addr string

	tb      testing.TB
	dir     string
	members int         // Of its cluster; 0 means 1.
	name    string      // A unique name, which identifies the server that answers.
	words   []string    // The command line of etcd.
	secure  *tls.Config // How this package reaches the server; nil means plain text.

	mu     sync.Mutex // Guards the fields below.
	run    *process.Process
	paused bool
}

// attempts bounds the starts, because another program may take a free port first.
const attempts = 5

// startTimeout bounds the time until a server answers.
const startTimeout = 20 * time.Second

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
	for _, program := range []string{"etcd", "etcdctl"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Fatalf("%s is not installed: run make deps, or apt-get install etcd-server etcd-client", program)
		}
	}
	var problems []error
	for range attempts {
		s, err := tryStart(tb, secure, settings)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("etcd does not start: %v", errors.Join(problems...))
	return nil
}

func tryStart(tb testing.TB, secure *tls.Config, settings []string) (*Server, error) {
	tb.Helper()
	client, peer, err := freePorts()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: client, tb: tb, dir: tb.TempDir(), name: rand.Text(), secure: secure}
	s.words = append([]string{
		"--name", s.name, "--data-dir", s.dataDir(),
		"--listen-client-urls", s.scheme() + client, "--advertise-client-urls", s.scheme() + client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", s.name + "=http://" + peer, "--initial-cluster-token", s.name,
		"--heartbeat-interval", "20", "--election-timeout", "200",
		"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
	}, settings...)
	err = s.launch()
	return s, err
}

// scheme begins the URL for clients.
func (s *Server) scheme() string {
	if s.secure == nil {
		return "http://"
	}
	return "https://"
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

// launch runs the server and returns when it answers.
func (s *Server) launch() error {
	run, err := process.Launch(s.logFile(), "etcd", s.words)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.run, s.paused = run, false
	s.mu.Unlock()
	if err := s.await(run); err != nil {
		run.Kill()
		return fmt.Errorf("%w; its output:\n%s", err, s.Log())
	}
	return nil
}

// await waits until the server answers, and checks that this server and no other answers.
func (s *Server) await(run *process.Process) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.answers()
		if err == nil {
			return nil
		}
		select {
		case <-run.Ended():
			return errors.New("etcd has ended")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("etcd did not answer within %v: %w", startTimeout, err)
		}
	}
}

// answers reads the names of the members, which needs a leader. It then checks that the
// server accepts a write.
func (s *Server) answers() error {
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
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
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

// current returns the last started process.
func (s *Server) current() (run *process.Process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.paused
}

// Running reports whether the server can answer: it has not ended and is not paused.
func (s *Server) Running() bool {
	run, paused := s.current()
	return !paused && run.Running()
}

// PID returns the process number of the last run.
func (s *Server) PID() int {
	run, _ := s.current()
	return run.PID()
}
