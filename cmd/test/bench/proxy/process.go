package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
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
	ended  chan struct{} // closed when the program has exited
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
	p := &process{name: name, url: url, log: log.Name(), cancel: cancel, ended: make(chan struct{})}
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
	var line string
	if first != nil {
		line, err = bufio.NewReader(first).ReadString('\n')
		p.url = strings.TrimSpace(line)
	}
	go func() {
		_ = p.cmd.Wait() // The error only reports the signal that stop sent, or what the log says.
		close(p.ended)
	}()
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("proxy: %s printed no address: %w\nThe log of the process ends with:\n%s", name, err, p.logged())
	}
	return p, nil
}

// errEnded means that a program has exited by itself, for example because another program has
// taken one of its ports meanwhile.
var errEnded = errors.New("the process has exited")

// listens waits until the process accepts connections.
func (p *process) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_, address, _ := strings.Cut(p.url, "://")
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("proxy: %s: %w\nThe log of the process ends with:\n%s", p.name, errEnded, p.logged())
		case <-ctx.Done():
			return fmt.Errorf("proxy: %s does not listen: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
		case <-time.After(10 * time.Millisecond):
		}
		if err == nil {
			return nil
		}
	}
}

// stop sends SIGTERM and waits until the process has ended.
func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// logged returns the end of the output of the process, for error messages.
func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
