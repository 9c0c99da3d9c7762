// Package servers starts real Redis and Memcached servers on loopback and reads their
// processor time. The servers end with the benchmark, even when the benchmark is killed.
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

// Server is a server process that this package started. Call Stop to end it.
type Server struct {
	// Addr is the address on which the server listens: 127.0.0.1 and its own port.
	Addr string

	cmd *exec.Cmd
	// life is the write end of the guardian's pipe. log is the path of the server's output.
	life  io.WriteCloser
	log   string
	ended chan struct{}
	once  sync.Once
}

// guardian is a shell script that becomes the server. Its background child reads the pipe,
// and kills the server when the pipe closes without a line. The pipe closes in this way
// when the benchmark ends without Stop.
const guardian = `
exec 3<&0 # A shell runs background jobs without standard input.
(trap '' HUP INT QUIT TERM; read -r word <&3 || kill -9 $$) >/dev/null 2>&1 &
exec "$@"`

// launch runs the program with the words as arguments. A file in dir receives its output.
func launch(dir, addr, program string, words ...string) (*Server, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("servers: %s is not installed: run make deps at the root", program)
	}
	log, err := os.CreateTemp(dir, filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The process has its own descriptor.
	in, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // The process has its own descriptor.
	words = append([]string{"-c", guardian, "sh", program}, words...)
	s := &Server{
		Addr: addr, life: life, log: log.Name(), ended: make(chan struct{}),
		cmd: exec.Command("sh", words...), //nolint:gosec,noctx // This package passes all words, and Stop ends the process.
	}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = in, log, log
	if err := s.cmd.Start(); err != nil {
		_ = life.Close()
		return nil, fmt.Errorf("servers: %s: %w", program, err)
	}
	go func() {
		_ = s.cmd.Wait() // The error only reports that the server was killed.
		close(s.ended)
	}()
	return s, nil
}

// Stop kills the server and waits until the process has ended. A second call does nothing.
func (s *Server) Stop() {
	s.once.Do(func() {
		_ = s.cmd.Process.Kill() // The server may already have ended.
		<-s.ended
		// The guardian must end only after the server. Its line tells it not to kill the process
		// id, which another process may have by now.
		_, _ = io.WriteString(s.life, "leave\n")
		_ = s.life.Close()
	})
}

// CPU returns the processor time of all threads of the server.
func (s *Server) CPU() (time.Duration, error) {
	const schedulerClock = 2
	var used unix.Timespec
	// The complement of the process id selects the kernel's CPU clock of the process.
	if err := unix.ClockGettime(^int32(s.cmd.Process.Pid)<<3|schedulerClock, &used); err != nil {
		return 0, fmt.Errorf("servers: read the processor time of %s: %w\nThe log of the server ends with:\n%s", s.Addr, err, s.said())
	}
	return time.Duration(used.Nano()), nil
}

// OwnCPU returns the processor time of all threads of this process.
func OwnCPU() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("servers: read the processor time of this process: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// CPUOf returns a function that reads the total processor time of the servers.
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

// said returns the end of the server's log, for error messages.
func (s *Server) said() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// errForeign means that another program listens on the port of the server.
var errForeign = errors.New("another program listens on its port")

// errEnded means that the server ended before its first response.
var errEnded = errors.New("the server ended before it responded")

// Resident returns the resident memory of the server, in bytes.
func (s *Server) Resident() (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("servers: read the memory of %s: %w\nThe log of the server ends with:\n%s", s.Addr, err, s.said())
	}
	var all, resident uint64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0, fmt.Errorf("servers: read the memory of %s: %w", s.Addr, err)
	}
	return resident * uint64(os.Getpagesize()), nil
}
