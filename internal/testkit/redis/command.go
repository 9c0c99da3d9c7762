package redis

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Do sends one command over a new connection. The reply is a string, an int64, nil, or a
// []any of these types. Words may have any bytes. An error reply of the server wraps
// ErrReply.
func (s *Server) Do(words ...string) (any, error) {
	r, err := s.access.call(s.Addr, process.Timeout, words...)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", words[0], s.Addr, err)
	}
	return r, nil
}

// must is Do for a command that has to succeed.
func (s *Server) must(words ...string) any {
	s.TB.Helper()
	r, err := s.Do(words...)
	if err != nil {
		s.TB.Fatalf("redis-server: %v", err)
	}
	return r
}

// text is Do for a command with a string as its reply.
func (s *Server) text(words ...string) (string, error) {
	r, err := s.Do(words...)
	if err != nil {
		return "", err
	}
	text, ok := r.(string)
	if !ok {
		return "", fmt.Errorf("%v to %s returns %T: want a string", words, s.Addr, r)
	}
	return text, nil
}

// CLI runs redis-cli against the server and returns its output without the final newline. It
// fails the test when redis-cli fails.
func (s *Server) CLI(words ...string) string {
	s.TB.Helper()
	out, err := s.cli(process.Timeout, words...)
	if err != nil {
		s.TB.Fatal(err)
	}
	return strings.TrimRight(out, "\n")
}

func (s *Server) cli(wait time.Duration, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	all := append([]string{"-e", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port)}, s.access.files...)
	if s.access.user != "" {
		all = append(all, "--no-auth-warning", "--user", s.access.user, "--pass", s.access.password)
	}
	out, err := exec.CommandContext(ctx, "redis-cli", append(all, words...)...).CombinedOutput() //nolint:gosec // tests give the words
	if err != nil {
		return "", fmt.Errorf("redis-cli -p %d %s: %w: %s", s.port, strings.Join(words, " "), err, out)
	}
	return string(out), nil
}

// Version returns the server's version, like "7.0.15".
func (s *Server) Version() string {
	s.TB.Helper()
	text, err := s.text("INFO", "server")
	if err != nil {
		s.TB.Fatal(err)
	}
	return fields(text)["redis_version"]
}

// CPU returns the processor time of the server so far, in user and system mode, for all
// threads. Its resolution is a microsecond.
func (s *Server) CPU() time.Duration {
	s.TB.Helper()
	text, err := s.text("INFO", "cpu")
	if err != nil {
		s.TB.Fatal(err)
	}
	var sum float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(fields(text)[name], 64)
		if err != nil {
			s.TB.Fatalf("INFO cpu of %s has no %s: %v", s.Addr, name, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// poll calls ready until it returns nil. After a timeout, poll returns the last error.
func poll(wait time.Duration, ready func() error) error {
	deadline := time.Now().Add(wait)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out after %v: %w", wait, err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}
