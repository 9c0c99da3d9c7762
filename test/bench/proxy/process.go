package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/test/bench/contest"
)

// process is a program that start launched. Call stop to end it.
type process struct {
	name string
	kind contest.Kind
	bar  float64
	url  string
	// health is the URL of the health listener, which serves /metrics. "" without one.
	health string
	// decides means that a rule matches every request, and responses have RateLimit fields.
	decides bool

	cmd    *exec.Cmd
	cancel context.CancelFunc
	// log is the path of the file that receives standard error.
	log string
}

// grace limits the time until the first response, and the time to exit after SIGTERM.
const grace = 10 * time.Second

// start launches a program. If url is "", start reads the URL from the program's first line.
func start(ctx context.Context, name, url, dir, program string, args ...string) (*process, error) {
	log, err := os.CreateTemp(dir, "*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The child has its own descriptor.
	ctx, cancel := context.WithCancel(ctx)
	p := &process{name: name, url: url, log: log.Name(), cancel: cancel}
	p.cmd = exec.CommandContext(ctx, filepath.Join(dir, program), args...) //nolint:gosec // This package built the program.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = grace
	p.cmd.Stderr = log
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

// logged returns the end of the standard error of the process, for error messages.
func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// answers waits until the process returns the body of the upstream.
func (p *process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		err := p.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("proxy: %s does not respond: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	decided := response.Header.Get("RateLimit") != ""
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK || len(body) != 1024:
		return fmt.Errorf("got status %d with %d bytes, want 200 with 1024 bytes", response.StatusCode, len(body))
	case decided != p.decides:
		return fmt.Errorf("got a RateLimit field %v, want %v: check the rules in its configuration", decided, p.decides)
	}
	return nil
}

// processorTime returns the processor time of the process, including its ended threads.
// /proc/PID/stat has the same value, but only in hundredths of a second.
func (p *process) processorTime() (time.Duration, error) {
	const schedulerClock = 2
	var used unix.Timespec
	// The complement of the process id selects the kernel's CPU clock of the process.
	if err := unix.ClockGettime(^int32(p.cmd.Process.Pid)<<3|schedulerClock, &used); err != nil {
		return 0, fmt.Errorf("proxy: read the processor time of %s: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
	}
	return time.Duration(used.Nano()), nil
}

// resident returns the resident memory of the process in bytes, or 0 when it is unknown.
func (p *process) resident() uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
