package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
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

// Server is an etcd of one member. Its methods may be called from several goroutines;
// those that can fail the test only from the test's own.
type Server struct {
	// Addr is where it listens for clients: 127.0.0.1 and a port of its own.
	Addr string

	tb    testing.TB
	dir   string
	name  string   // Nobody else's: it tells whether it is this server that answers.
	words []string // What etcd is started with.

	mu     sync.Mutex // Guards the two below.
	run    *process.Process
	paused bool
}

// attempts: another program may take a free port before the server does.
const attempts = 5

// patience is how long a server may take to answer.
const patience = 20 * time.Second

// Start runs a server until the test ends. Settings are etcd's own, as words:
// "--auto-compaction-retention", "1". It fails the test when etcd is not installed: a
// test that passes because it did not run proves nothing.
//
// The server's ticks are a fifth of what is usual, so that leases of 1 s are granted;
// with etcd's own settings none is below 2 s.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	for _, program := range []string{"etcd", "etcdctl"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Fatalf("%s is not installed: run make deps, or apt-get install etcd-server etcd-client", program)
		}
	}
	var problems []error
	for range attempts {
		s, err := tryStart(tb, settings)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("etcd does not start: %v", errors.Join(problems...))
	return nil
}

func tryStart(tb testing.TB, settings []string) (*Server, error) {
	tb.Helper()
	client, peer, err := freePorts()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: client, tb: tb, dir: tb.TempDir(), name: rand.Text()}
	s.words = append([]string{
		"--name", s.name, "--data-dir", s.dataDir(),
		"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", s.name + "=http://" + peer, "--initial-cluster-token", s.name,
		"--heartbeat-interval", "20", "--election-timeout", "200",
		"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
	}, settings...)
	err = s.launch()
	return s, err
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

// launch runs the server, and returns when it answers.
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
		return fmt.Errorf("%w; it said:\n%s", err, s.Log())
	}
	return nil
}

// await waits until the server answers, and until it is ours that answers.
func (s *Server) await(run *process.Process) error {
	deadline := time.Now().Add(patience)
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
			return fmt.Errorf("etcd did not answer within %v: %w", patience, err)
		}
	}
}

// answers asks the server for the names of its members, by a read that only a server
// with a leader answers, and then whether it writes.
func (s *Server) answers() error {
	reply, err := s.post("/v3/cluster/member/list", "{}")
	if err != nil {
		return err
	}
	var list struct {
		Members []struct {
			Name string `json:"name"`
		} `json:"members"`
	}
	if err := json.Unmarshal(reply, &list); err != nil {
		return err
	}
	if len(list.Members) != 1 || list.Members[0].Name != s.name {
		return fmt.Errorf("%s is another server: %s", s.Addr, reply)
	}
	_, err = s.post("/v3/kv/range", `{"key":"AA=="}`)
	return err
}

func (s *Server) post(path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
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

// current gives the run that was started last.
func (s *Server) current() (run *process.Process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.paused
}

// Running tells whether the server can answer: it was not stopped, killed or paused.
func (s *Server) Running() bool {
	run, paused := s.current()
	return !paused && run.Running()
}

// PID is the number of the server's process, the last one's if it has ended.
func (s *Server) PID() int {
	run, _ := s.current()
	return run.PID()
}
