package redis

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a redis-server without persistence: Restart loses its keys. A node of a cluster still knows the cluster
// then, and a sentinel still knows its master.
type Server struct {
	process.Server

	port   int
	access access
}

// busOffset is the distance between a port and the second port on which a cluster node listens.
const busOffset = 10_000

// Start runs a server until the test ends. Settings are flags of redis-server, like
// "--maxmemory", "1mb". Start fails the test when redis-server is not installed: a test that is
// skipped proves nothing.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, access{}, func(dir string, port int) []string {
		return append(common(dir, "--port", strconv.Itoa(port)), settings...)
	})
}

// common returns the flags of every server except sentinels, followed by words.
func common(dir string, words ...string) []string {
	return append([]string{
		"--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", // By default a new replica has no data for five seconds.
	}, words...)
}

// layout returns the command line of redis-server for a folder and a port.
type layout func(dir string, port int) []string

// start runs a server in its own folder, on a free port.
func start(tb testing.TB, a access, words layout) *Server {
	tb.Helper()
	process.Require(tb, "redis-server", "redis-server", "redis-cli")
	return process.Retry(tb, "redis-server does not start", func() (*Server, error) { return tryStart(tb, a, words) })
}

func tryStart(tb testing.TB, a access, words layout) (*Server, error) {
	tb.Helper()
	port, err := process.FreePort(busOffset)
	if err != nil {
		return nil, err
	}
	dir := tb.TempDir()
	s := &Server{Server: process.Server{TB: tb, Name: "redis-server", Addr: process.Loopback(port), Dir: dir}, port: port, access: a}
	s.Command = append([]string{"redis-server"}, words(dir, port)...)
	if len(a.env) > 0 {
		s.Command = slices.Concat([]string{"env"}, a.env, s.Command)
	}
	s.Ready = s.ready
	err = s.Launch()
	return s, err
}

// ready checks the process number in the answer.
func (s *Server) ready(pid int) error {
	text, err := s.text("INFO", "server")
	if err != nil {
		return err
	}
	if fields(text)["process_id"] != strconv.Itoa(pid) {
		return errors.New("another redis-server answers on " + s.Addr)
	}
	if s.access.prepare != nil {
		return s.access.prepare(s.access, s.Addr)
	}
	return nil
}

// Port returns the port of Addr.
func (s *Server) Port() int { return s.port }
