package postgres

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
)

// The superuser and the database that every server has.
const (
	User     = "postgres"
	Database = "postgres"
)

// Server is one PostgreSQL cluster. Restart keeps its port and its data. The children of a killed server end a moment
// later by themselves. While it is paused, it accepts no new connection; open connections have processes of their own,
// which go on.
type Server struct {
	process.Server

	// Password is that of User over TCP. Over the socket, there is none.
	Password string

	programs string   // The folder of the programs.
	words    []string // The command line without the port.
}

// Start runs a server until the test ends. Settings are those of postgresql.conf, like "max_connections=20".
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, func(*Server) []string { return settings })
}

// start runs a server with the settings that more gives after initdb.
func start(tb testing.TB, more func(*Server) []string) *Server {
	tb.Helper()
	s := newServer(tb, folder(tb), rand.Text())
	s.initdb()
	s.words = []string{"-D", s.data(), "-k", s.Dir, "-c", "listen_addresses=127.0.0.1"}
	fixed := []string{"fsync=off", "shared_buffers=32MB", "logging_collector=off", "log_min_messages=warning"}
	for _, setting := range append(fixed, more(s)...) {
		s.words = append(s.words, "-c", setting)
	}
	return s.launchAnywhere("PostgreSQL does not start")
}

func newServer(tb testing.TB, programs, password string) *Server {
	tb.Helper()
	s := &Server{Server: process.Server{TB: tb, Name: "PostgreSQL", Dir: ownFolder(tb)}, programs: programs, Password: password}
	s.Ready = s.ready
	return s
}

// launchAnywhere launches the server on a free port.
func (s *Server) launchAnywhere(failure string) *Server {
	s.TB.Helper()
	return process.Retry(s.TB, failure, func() (*Server, error) {
		port, err := process.FreePort(0)
		if err != nil {
			return nil, err
		}
		s.Addr = process.Loopback(port)
		s.Command = as(filepath.Join(s.programs, "postgres"), append(slices.Clone(s.words), "-p", strconv.Itoa(port))...)
		err = s.Launch()
		return s, err
	})
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
func as(program string, words ...string) []string {
	command := append([]string{program}, words...)
	if os.Getuid() == 0 {
		command = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"}, command...)
	}
	return command
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) initdb() {
	s.TB.Helper()
	file := filepath.Join(s.Dir, "password")
	if err := os.WriteFile(file, []byte(s.Password+"\n"), 0o600); err != nil {
		s.TB.Fatal(err)
	}
	if os.Getuid() == 0 {
		uid, gid := owner(s.TB)
		if err := os.Chown(file, uid, gid); err != nil {
			s.TB.Fatal(err)
		}
	}
	s.program("initdb", "-D", s.data(), "-U", User, "--pwfile", file,
		"--no-sync", "--locale=C", "-E", "UTF8", "--auth-local=trust", "--auth-host=scram-sha-256")
}

// ready checks that this server, and no other one on its port, takes commands.
func (s *Server) ready(pid int) error {
	status, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	lines := strings.Split(string(status), "\n")
	if err == nil && (len(lines) < 8 || lines[0] != strconv.Itoa(pid) ||
		!slices.Contains([]string{"ready", "standby"}, strings.TrimSpace(lines[7]))) {
		err = fmt.Errorf("its status is %q", status)
	}
	return err
}

// Socket returns the address over the socket, where User needs no password: the folder and the port.
func (s *Server) Socket() string {
	return s.Dir + ":" + s.port()
}
