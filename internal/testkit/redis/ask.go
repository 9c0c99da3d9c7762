package redis

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Do sends one command over a connection of its own. The reply is a string, an
// int64, nil, or a []any of such; any byte may stand in a word. A refusal by the
// server is an error that wraps ErrReply.
func (s *Server) Do(words ...string) (any, error) {
	r, err := s.access.ask(s.Addr, patience, words...)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", words[0], s.Addr, err)
	}
	return r, nil
}

// must is Do for a command that has to succeed.
func (s *Server) must(words ...string) any {
	s.tb.Helper()
	r, err := s.Do(words...)
	if err != nil {
		s.tb.Fatalf("redis-server: %v", err)
	}
	return r
}

// text is Do for a command that gives a string.
func (s *Server) text(words ...string) (string, error) {
	r, err := s.Do(words...)
	if err != nil {
		return "", err
	}
	text, ok := r.(string)
	if !ok {
		return "", fmt.Errorf("%v to %s gives %T: want a string", words, s.Addr, r)
	}
	return text, nil
}

// CLI runs redis-cli against the server, gives what it prints, without the last
// line's end, and fails the test when it fails.
func (s *Server) CLI(words ...string) string {
	s.tb.Helper()
	out, err := s.cli(patience, words...)
	if err != nil {
		s.tb.Fatal(err)
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

// Version is the server's own, such as "7.0.15".
func (s *Server) Version() string {
	s.tb.Helper()
	text, err := s.text("INFO", "server")
	if err != nil {
		s.tb.Fatal(err)
	}
	return fields(text)["redis_version"]
}

// CPU is the time that the server has spent so far, its own and the system's for
// it, over all its threads. Its resolution is a microsecond.
func (s *Server) CPU() time.Duration {
	s.tb.Helper()
	text, err := s.text("INFO", "cpu")
	if err != nil {
		s.tb.Fatal(err)
	}
	var sum float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(fields(text)[name], 64)
		if err != nil {
			s.tb.Fatalf("INFO cpu of %s has no %s: %v", s.Addr, name, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// poll asks until ready says nothing is wrong any more, or gives what was wrong last.
func poll(wait time.Duration, ready func() error) error {
	deadline := time.Now().Add(wait)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", wait, err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}
