// Package servers starts real Redis and Memcached servers on loopback, reads the
// processor time that they use, and ends them, also when the benchmark is killed.
package servers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Server is a process that was started here, and that Stop ends.
type Server struct {
	// Addr is where it listens: 127.0.0.1 and a port of its own.
	Addr string

	cmd *exec.Cmd
	// life keeps the guardian waiting; log is what the server has said.
	life  io.WriteCloser
	log   string
	ended chan struct{}
	once  sync.Once
}

// guardian becomes the server, and leaves a child behind that kills it when the
// benchmark's end of the pipe closes without a word: when the benchmark is gone.
const guardian = `
exec 3<&0 # What a shell runs in the background has no standard input.
(trap '' HUP INT QUIT TERM; read -r word <&3 || kill -9 $$) >/dev/null 2>&1 &
exec "$@"`

// launch runs a program with the words given. What it says goes to a file in dir.
func launch(dir, addr, program string, words ...string) (*Server, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("servers: %s is not installed: run make deps at the root", program)
	}
	log, err := os.CreateTemp(dir, filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The process has a descriptor of its own.
	in, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // As above.
	words = append([]string{"-c", guardian, "sh", program}, words...)
	s := &Server{
		Addr: addr, life: life, log: log.Name(), ended: make(chan struct{}),
		cmd: exec.Command("sh", words...), //nolint:gosec,noctx // the words are this package's, and Stop ends it
	}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = in, log, log
	if err := s.cmd.Start(); err != nil {
		_ = life.Close()
		return nil, fmt.Errorf("servers: %s: %w", program, err)
	}
	go func() {
		_ = s.cmd.Wait() // A server that is killed ends with a failure.
		close(s.ended)
	}()
	return s, nil
}

// Stop kills the server and waits until it is gone. It may be called twice.
func (s *Server) Stop() {
	s.once.Do(func() {
		_ = s.cmd.Process.Kill() // It may have ended by itself.
		<-s.ended
		// Only now the guardian is sent away: it must not kill a number that is another's by then.
		_, _ = io.WriteString(s.life, "leave\n")
		_ = s.life.Close()
	})
}

// CPU is the processor time that the server has used so far, in all its threads.
func (s *Server) CPU() (time.Duration, error) {
	const schedulerClock = 2
	var used unix.Timespec
	// The kernel's CPU clock of a process is named by the complement of its id.
	if err := unix.ClockGettime(^int32(s.cmd.Process.Pid)<<3|schedulerClock, &used); err != nil {
		return 0, fmt.Errorf("servers: processor time of %s: %w\n%s", s.Addr, err, s.said())
	}
	return time.Duration(used.Nano()), nil
}

// OwnCPU is the processor time that this process has used so far, in all its threads.
func OwnCPU() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("servers: processor time of this process: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// CPUOf gives a reading of what all the servers have used together.
func CPUOf(all []*Server) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		var sum time.Duration
		for _, s := range all {
			used, err := s.CPU()
			if err != nil {
				return 0, err
			}
			sum += used
		}
		return sum, nil
	}
}

// said gives the end of the server's log, for an error of ours.
func (s *Server) said() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// errEnded says that the server has not lived until it answered.
var errEnded = errors.New("servers: it has ended")
