package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// patience limits the time until the first response of a server.
const patience = 10 * time.Second

// attempts is the number of ports to try. Another program can take a free port before the
// server does.
const attempts = 5

// Redis starts a redis-server that stores nothing on disk. settings are additional
// arguments. A file in dir receives the output of the server.
func Redis(ctx context.Context, dir string, settings ...string) (*Server, error) {
	return try(ctx, "PING\r\n", "+PONG", func(addr, port string) (*Server, error) {
		words := []string{"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
		return launch(dir, addr, "redis-server", append(words, settings...)...)
	})
}

// Memcached starts a memcached with enough memory for all keys of a contest.
func Memcached(ctx context.Context, dir string) (*Server, error) {
	who, err := user.Current() // memcached refuses to run as root without -u.
	if err != nil {
		return nil, err
	}
	return try(ctx, "version\r\n", "VERSION", func(addr, port string) (*Server, error) {
		return launch(dir, addr, "memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-u", who.Username, "-m", "256")
	})
}

// try starts a server on a free port and waits for its first response.
func try(ctx context.Context, query, answer string, start func(addr, port string) (*Server, error)) (*Server, error) {
	var problems []error
	for range attempts {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := start(loopback(port), strconv.Itoa(port))
		if err != nil {
			return nil, err
		}
		if err = s.await(ctx, query, answer); err == nil {
			return s, nil
		}
		s.Stop()
		problems = append(problems, fmt.Errorf("%w: its log ends with:\n%s", err, s.said()))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("servers: %w", errors.Join(problems...))
}

// await waits until the server sends the expected response.
func (s *Server) await(ctx context.Context, query, answer string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := s.answers(ctx, query, answer)
		select {
		case <-s.ended:
			return errEnded
		default:
		}
		if err == nil {
			if s.owns() {
				return nil
			}
			err = errForeign
		}
		select {
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%s does not respond: %w", s.Addr, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) answers(ctx context.Context, query, answer string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, query); err != nil {
		return err
	}
	var buffer [64]byte
	n, err := conn.Read(buffer[:])
	if got := string(buffer[:n]); !strings.HasPrefix(got, answer) {
		return fmt.Errorf("got the response %q, want the prefix %q: %w", got, answer, errors.Join(err, os.ErrInvalid))
	}
	return nil
}

// Ports are below the range that systems use for outgoing connections. A cluster node also
// listens on its port + busOffset.
const (
	lowestPort = 10_000
	busOffset  = 10_000
	ports      = 32_768 - busOffset - lowestPort
)

// freePort returns a free port for which port + busOffset is also free.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("servers: found no free port on 127.0.0.1 in 1000 attempts: stop programs that listen on many ports")
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port)) //nolint:noctx // The listener is closed immediately.
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// greeting is the begin of an HTTP/2 connection: the preface and empty settings. A server answers with
// its own settings.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// GRPC starts a program that serves gRPC. words gives its arguments for the address, in the words of
// the command env.
func GRPC(ctx context.Context, dir string, words func(addr, port string) []string) (*Server, error) {
	return try(ctx, greeting, "\x00\x00", func(addr, port string) (*Server, error) {
		return launch(dir, addr, "env", words(addr, port)...)
	})
}
