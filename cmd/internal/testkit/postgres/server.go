package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// The superuser and the database that every server has.
const (
	User     = "postgres"
	Database = "postgres"
)

// Server is one PostgreSQL cluster. Its methods are safe for concurrent use. Methods that can fail the test must be
// called from the test's goroutine.
type Server struct {
	// Addr is the address for clients: 127.0.0.1 and the server's own port.
	Addr string
	// Password is that of User over TCP. Over the socket, there is none.
	Password string

	tb       testing.TB
	programs string // The folder of the programs.
	dir      string
	words    []string

	mu     sync.Mutex // Guards the fields below.
	run    *process.Process
	paused bool
}

const (
	// attempts bounds the starts, because another program may take a free port first, and because a killed server's
	// children hold its memory for a moment.
	attempts     = 20
	startTimeout = 20 * time.Second
)

// Start runs a server until the test ends. Settings are those of postgresql.conf, like "max_connections=20".
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, func(*Server) []string { return settings })
}

// start runs a server with the settings that more gives after initdb.
func start(tb testing.TB, more func(*Server) []string) *Server {
	tb.Helper()
	s := &Server{tb: tb, programs: folder(tb), dir: ownFolder(tb), Password: rand.Text()}
	s.initdb()
	s.words = []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=127.0.0.1"}
	fixed := []string{"fsync=off", "shared_buffers=32MB", "logging_collector=off", "log_min_messages=warning"}
	for _, setting := range append(fixed, more(s)...) {
		s.words = append(s.words, "-c", setting)
	}
	return s.launchAnywhere("PostgreSQL does not start")
}

// launchAnywhere launches the server on a free port.
func (s *Server) launchAnywhere(failure string) *Server {
	s.tb.Helper()
	var problems []error
	for range attempts {
		port, err := freePort()
		if err != nil {
			s.tb.Fatal(err)
		}
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = s.launch(); err == nil {
			return s
		}
		problems = append(problems, err)
	}
	s.tb.Fatalf("%s: %v", failure, errors.Join(problems...))
	return nil
}

// folder finds the newest programs. Debian does not put them into PATH.
func folder(tb testing.TB) string {
	tb.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // The pattern is valid.
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		tb.Fatal("PostgreSQL is not installed: run make deps, or apt-get install postgresql")
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	return filepath.Dir(found[0])
}

// version reads 15 of /usr/lib/postgresql/15/bin/postgres; 0 elsewhere.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// ownFolder makes a folder that the server's user can reach: the test's own folders belong to root alone. Its name is
// short, because the name of a socket has at most 107 bytes.
func ownFolder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	if os.Getuid() == 0 {
		uid, gid := owner(tb)
		if err := os.Chown(dir, uid, gid); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func owner(tb testing.TB) (uid, gid int) {
	tb.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		tb.Fatalf("PostgreSQL does not run as root: %v", err)
	}
	uid, _ = strconv.Atoi(u.Uid) // They are numbers on Unix.
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid
}

// as gives the command line that runs a program as the server's user. setpriv becomes the program, so that its process
// number is the program's.
func as(program string, words ...string) (name string, all []string) {
	if os.Getuid() != 0 {
		return program, words
	}
	return "setpriv", append([]string{"--reuid=postgres", "--regid=postgres", "--init-groups", program}, words...)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) initdb() {
	s.tb.Helper()
	file := filepath.Join(s.dir, "password")
	if err := os.WriteFile(file, []byte(s.Password+"\n"), 0o600); err != nil {
		s.tb.Fatal(err)
	}
	if os.Getuid() == 0 {
		uid, gid := owner(s.tb)
		if err := os.Chown(file, uid, gid); err != nil {
			s.tb.Fatal(err)
		}
	}
	// A second on an idle machine; above a minute was seen beside four busy loops.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	name, words := as(filepath.Join(s.programs, "initdb"), "-D", s.data(), "-U", User, "--pwfile", file,
		"--no-sync", "--locale=C", "-E", "UTF8", "--auth-local=trust", "--auth-host=scram-sha-256")
	command := exec.CommandContext(ctx, name, words...) //nolint:gosec // the words are ours
	command.Dir = s.dir
	if out, err := command.CombinedOutput(); err != nil {
		s.tb.Fatalf("initdb: %v: %s", err, out)
	}
}

// launch runs the server and returns when it answers.
func (s *Server) launch() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	name, words := as(filepath.Join(s.programs, "postgres"), append(slices.Clone(s.words), "-p", port)...)
	run, err := process.Launch(filepath.Join(s.dir, "log"), name, words)
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
	s.tb.Cleanup(s.Kill)
	return nil
}

// await waits until this server, and no other one on its port, takes commands.
func (s *Server) await(run *process.Process) error {
	deadline := time.Now().Add(startTimeout)
	for {
		status, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		lines := strings.Split(string(status), "\n")
		if err == nil && len(lines) >= 8 && lines[0] == strconv.Itoa(run.PID()) &&
			slices.Contains([]string{"ready", "standby"}, strings.TrimSpace(lines[7])) {
			return nil
		}
		select {
		case <-run.Ended():
			return errors.New("PostgreSQL has ended")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL did not answer within %v", startTimeout)
		}
	}
}

// Log returns the output of all runs of the server.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Socket returns the address over the socket, where User needs no password: the folder and the port.
func (s *Server) Socket() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return s.dir + ":" + port
}

// Ports are below the range that systems use for outgoing connections, so that no client takes the port of a server
// that is down.
func freePort() (int, error) {
	for port := range 1000 {
		port += 10_000 + os.Getpid()%20_000
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it ends at once
		if err == nil {
			_ = l.Close()
			return port, nil
		}
	}
	return 0, errors.New("no free port on 127.0.0.1: stop programs that listen on many ports")
}
