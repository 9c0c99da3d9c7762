// Package process runs the servers of tests, so that none outlives its test.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// guardian becomes the server, and leaves a child behind that kills the server when this
// test's end of the pipe closes without a word. So the server ends with the test, even
// one that is killed, and even while it is paused.
const guardian = `
exec 3<&0 # A shell gives what it runs in the background no standard input.
(trap '' HUP INT QUIT TERM; read -r word <&3 || kill -9 $$) >/dev/null 2>&1 &
exec "$0" "$@"`

// Process is one run of a server. Its methods may be called by several goroutines.
type Process struct {
	command *exec.Cmd
	life    io.WriteCloser
	ended   chan struct{} // Closed when the process is gone and waited for.
	once    sync.Once
}

// Launch runs a program with the words given; what it says goes to the end of the file log.
func Launch(log, program string, words []string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }() // The process has its own by then.
	words = append([]string{"-c", guardian, program}, words...)
	p := &Process{
		command: exec.Command("sh", words...), //nolint:gosec,noctx // tests give the words, and kill ends it
		ended:   make(chan struct{}),
	}
	p.command.Stdout, p.command.Stderr = output, output
	if p.life, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("sh: %w", err)
	}
	go func() {
		_ = p.command.Wait() // A server that is killed ends with a failure.
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the process is gone and waited for.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is the number of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Running says whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Signal sends to the server itself: the guardian has become it.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stopping is how long a process may take to stop.
const stopping = 10 * time.Second

// AwaitStop waits, for a while, until all threads of a process that was told to stop
// have: on a busy machine that takes longer than the telling.
func (p *Process) AwaitStop() {
	for deadline := time.Now().Add(stopping); p.Running() && time.Now().Before(deadline); {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
		if err != nil || !slices.ContainsFunc(states, runs) {
			return
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}

// runs says that a thread has not stopped, by its file of /proc.
func runs(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	_, state, found := bytes.Cut(text, []byte(") ")) // The name before may have blanks.
	return found && !bytes.HasPrefix(state, []byte("T"))
}

// Kill ends the server as kill -9 does, and waits until it is gone. Only then the
// guardian is told to leave: the number it would kill may be another's by now.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.ended
	p.once.Do(func() {
		_, _ = io.WriteString(p.life, "leave\n") // The pipe is closed when the guardian is gone as well.
		_ = p.life.Close()
	})
}
