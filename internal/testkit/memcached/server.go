package memcached

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a running Memcached server.
type Server struct {
	// Addr is the server's address: 127.0.0.1 and its own port.
	Addr string

	secure  *tls.Config // nil for a server without TLS
	pid     int
	process *exec.Cmd
	life    io.Closer
	output  bytes.Buffer // Read it only after ended is closed.
	ended   chan struct{}
	once    sync.Once
}

// attempts bounds the starts, because another program may take a free port first.
const attempts = 5

// startTimeout bounds the time until a server answers.
const startTimeout = 10 * time.Second

// guardian is a shell script that runs the server while its own standard input is open. The
// server therefore ends even with a test that is killed. The script uses SIGKILL, because a
// paused server does not react to other signals.
const guardian = `
memcached "$@" & server=$!
exec 3<&0 # A shell closes the standard input of background commands.
(cat <&3; kill -9 "$server") >/dev/null 2>&1 & watch=$!
wait "$server"
kill "$watch" # The process number of a killed server may later belong to another process.`

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
	var problems []error
	for range attempts {
		port, err := freePort()
		if err != nil {
			tb.Fatal(err)
		}
		s, err := start(port, secure, args)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("memcached does not start: %v", errors.Join(problems...))
	return nil
}

// StartAt is Start at a given address of loopback, for example that of a killed server.
func StartAt(tb testing.TB, addr string, args ...string) *Server {
	tb.Helper()
	_, digits, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := start(port, nil, args)
	if err != nil {
		tb.Fatalf("memcached does not start at %s: %v", addr, err)
	}
	tb.Cleanup(s.Stop)
	return s
}

func start(port int, secure *tls.Config, args []string) (*Server, error) {
	if _, err := exec.LookPath("memcached"); err != nil {
		return nil, errors.New("memcached is not installed: run make deps, or apt-get install memcached")
	}
	who, err := user.Current() // Memcached refuses to run as root without the flag -u.
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"-c", guardian, "memcached", "-l", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "0", "-u", who.Username,
	}, args...)
	s := &Server{
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		secure:  secure,
		process: exec.Command("sh", args...), //nolint:gosec,noctx // because tests give the words, and Stop ends it
		ended:   make(chan struct{}),
	}
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if s.life, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.process.Wait() // Wait fails for a server that a signal has ended.
		close(s.ended)
	}()
	if err := s.await(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w; its output:\n%s", err, s.output.String())
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // because it ends at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("%v is not a TCP address", l.Addr())
	}
	return addr.Port, nil
}

// await waits until the server answers, and checks that its process still runs: another
// server might answer.
func (s *Server) await() error {
	deadline := time.After(startTimeout)
	for {
		select {
		case <-s.ended:
			return errors.New("memcached has ended")
		case <-deadline:
			return fmt.Errorf("memcached did not answer within %v", startTimeout)
		case <-time.After(5 * time.Millisecond):
			if s.answers() {
				return nil
			}
		}
	}
}

// answers reports whether the server answers, and stores its process number.
func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, startTimeout) //nolint:noctx // because the time is bounded
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if s.secure != nil {
		secure := s.secure.Clone()
		secure.ServerName = "127.0.0.1"
		conn = tls.Client(conn, secure)
	}
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "STAT pid ")))
	if err != nil || pid <= 1 {
		return false
	}
	s.pid = pid
	return true
}

// Stop kills the server, paused or not, and waits until it has ended. A second call does
// nothing.
func (s *Server) Stop() {
	s.once.Do(func() { _ = s.life.Close() })
	<-s.ended
}

// Kill ends the server as kill -9 does, and waits until it has ended.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGKILL)
	<-s.ended
}

// Pause stops the server's process, and waits until it has stopped. Connections stay open, the
// kernel accepts new ones, and requests wait until Resume.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.signal(tb, process.Pause)
	process.AwaitStop(s.pid)
}

// Resume continues a paused server.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.signal(tb, process.Resume)
}

func (s *Server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	select {
	case <-s.ended:
		tb.Fatalf("memcached at %s has ended: %v cannot reach it", s.Addr, sig)
	default:
	}
	run, err := os.FindProcess(s.pid)
	if err == nil {
		err = run.Signal(sig)
	}
	if err != nil {
		tb.Fatalf("memcached at %s: %v: %v", s.Addr, sig, err)
	}
}
