// Package process runs servers for tests. No server outlives its test.
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

// guardian is a shell script that becomes the server. It first starts a child that kills the
// server when the test's end of a pipe closes without a word. The server therefore ends even
// with a test that is killed, and even while it is paused.
const guardian = `
exec 3<&0 # A shell closes the standard input of background commands.
(trap '' HUP INT QUIT TERM; read -r word <&3 || kill -9 $$) >/dev/null 2>&1 &
exec "$0" "$@"`

// Process is one run of a server. Its methods are safe for concurrent use.
type Process struct {
	command *exec.Cmd
	life    io.WriteCloser
	ended   chan struct{} // Closed after the process has ended and Wait has returned.
	once    sync.Once
}

// Launch runs a program with the arguments in words. It appends the output to the file log.
func Launch(log, program string, words []string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }() // The process has its own descriptor by then.
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
		_ = p.command.Wait() // Wait fails for a server that was killed.
		close(p.ended)
	}()
	return p, nil
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID returns the process number.
func (p *Process) PID() int { return p.command.Process.Pid }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the server. The guardian's process has become the server.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stopTimeout bounds AwaitStop.
const stopTimeout = 10 * time.Second

// AwaitStop waits until all threads of the server have stopped after a stop signal.
func (p *Process) AwaitStop() { AwaitStop(p.PID()) }

// AwaitStop waits until all threads of a process have stopped after a stop signal, or until a
// timeout. On a busy machine the threads stop some time after the signal.
func AwaitStop(pid int) {
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || !slices.ContainsFunc(states, runs) {
			return
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}

// runs reports whether a thread has not stopped, by its stat file in /proc.
func runs(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	_, state, found := bytes.Cut(text, []byte(") ")) // The name before the parenthesis may contain spaces.
	return found && !bytes.HasPrefix(state, []byte("T"))
}

// Kill ends the server as kill -9 does, and waits until it has ended. Then it tells the guardian's
// child to leave, because the process number may soon belong to another process.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.ended
	p.once.Do(func() {
		_, _ = io.WriteString(p.life, "leave\n") // The write fails when the child has ended too.
		_ = p.life.Close()
	})
}
