package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
)

// process is a program that start launched. Call stop to end it.
type process struct {
	name string
	kind contest.Kind
	url  string
	// health is the URL of the health listener, which serves /metrics. "" without one.
	health string
	// decides means that a limit applies to every request, and responses have RateLimit fields.
	decides bool
	// accessLog is the path of the access log. "" without one.
	accessLog string

	cmd    *exec.Cmd
	cancel context.CancelFunc
	// log is the path of the file that receives the output.
	log string
}

// grace limits the time until the first response, and the time to exit after SIGTERM.
const grace = 10 * time.Second

// start launches the program at a path, with a log in dir. If url is "", start reads the URL
// from the program's first line.
func start(ctx context.Context, name, url, dir, program string, args ...string) (*process, error) {
	log, err := os.CreateTemp(dir, "*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The child has its own descriptor.
	ctx, cancel := context.WithCancel(ctx)
	p := &process{name: name, url: url, log: log.Name(), cancel: cancel}
	p.cmd = exec.CommandContext(ctx, program, args...) //nolint:gosec // This package chose the program.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = grace
	p.cmd.Stderr = log
	if url != "" {
		p.cmd.Stdout = log
	}
	// HEADGATE_ variables of the user would change the configuration of the measured program.
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "HEADGATE_") })
	var first io.Reader
	if url == "" {
		if first, err = p.cmd.StdoutPipe(); err != nil {
			cancel()
			return nil, err
		}
	}
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("proxy: %s: %w", name, err)
	}
	if first != nil {
		line, err := bufio.NewReader(first).ReadString('\n')
		if err != nil {
			p.stop()
			return nil, fmt.Errorf("proxy: %s printed no address: %w\nThe log of the process ends with:\n%s", name, err, p.logged())
		}
		p.url = strings.TrimSpace(line)
	}
	return p, nil
}

// stop sends SIGTERM and waits until the process has ended.
func (p *process) stop() {
	p.cancel()
	_ = p.cmd.Wait() // The error only reports the signal that stop sent.
}

// logged returns the end of the output of the process, for error messages.
func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
