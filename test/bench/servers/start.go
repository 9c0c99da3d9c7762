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

// patience is how long a server may take to answer at first.
const patience = 10 * time.Second

// attempts: another program may take the free port before the server does.
const attempts = 5

// Redis starts a redis-server that keeps nothing on disk; settings are its own, as
// words. What it says goes to a file in dir.
func Redis(ctx context.Context, dir string, settings ...string) (*Server, error) {
	return try(ctx, "PING\r\n", "+PONG", func(addr, port string) (*Server, error) {
		words := []string{"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
		return launch(dir, addr, "redis-server", append(words, settings...)...)
	})
}

// Memcached starts a memcached with room for everything that a contest counts.
func Memcached(ctx context.Context, dir string) (*Server, error) {
	who, err := user.Current() // It refuses to run as root unless it is named.
	if err != nil {
		return nil, err
	}
	return try(ctx, "version\r\n", "VERSION", func(addr, port string) (*Server, error) {
		return launch(dir, addr, "memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-u", who.Username, "-m", "256")
	})
}

// try starts a server on a free port, and returns when it answers.
func try(ctx context.Context, ask, answer string, start func(addr, port string) (*Server, error)) (*Server, error) {
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
		if err = s.await(ctx, ask, answer); err == nil {
			return s, nil
		}
		s.Stop()
		problems = append(problems, fmt.Errorf("%w; it said:\n%s", err, s.said()))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("servers: %w", errors.Join(problems...))
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context, ask, answer string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := s.answers(ctx, ask, answer)
		select {
		case <-s.ended:
			return errEnded
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", s.Addr, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) answers(ctx context.Context, ask, answer string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, ask); err != nil {
		return err
	}
	var buffer [64]byte
	n, err := conn.Read(buffer[:])
	if got := string(buffer[:n]); !strings.HasPrefix(got, answer) {
		return fmt.Errorf("it answers %q, not %q: %w", got, answer, errors.Join(err, os.ErrInvalid))
	}
	return nil
}

// Ports come from below those that systems give to outgoing connections. A cluster's
// node listens on its port + busOffset too.
const (
	lowestPort = 10_000
	busOffset  = 10_000
	ports      = 32_768 - busOffset - lowestPort
)

// freePort gives a port that nobody listens on, and nobody on busOffset above it.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("servers: no port is free on 127.0.0.1: end the programs that listen on hundreds of them")
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port)) //nolint:noctx // it is closed at once
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
