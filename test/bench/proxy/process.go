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

// process is a program that was started here, and that stop ends.
type process struct {
	name string
	kind contest.Kind
	bar  float64
	url  string
	// decides says that a rule matches every request, which the answers tell.
	decides bool

	cmd    *exec.Cmd
	cancel context.CancelFunc
	// log is the file that its standard error goes to.
	log string
}

// grace is how long a process may take to answer at first, and to end when told.
const grace = 10 * time.Second

// start starts a program. One that is given no url prints it as its first line.
func start(ctx context.Context, name, url, dir, program string, args ...string) (*process, error) {
	log, err := os.CreateTemp(dir, "*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The child has a descriptor of its own.
	ctx, cancel := context.WithCancel(ctx)
	p := &process{name: name, url: url, log: log.Name(), cancel: cancel}
	p.cmd = exec.CommandContext(ctx, filepath.Join(dir, program), args...) //nolint:gosec // built here
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = grace
	p.cmd.Stderr = log
	// Settings of the user's own would change what is measured.
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
			return nil, fmt.Errorf("proxy: %s did not say where it listens: %w\n%s", name, err, p.logged())
		}
		p.url = strings.TrimSpace(line)
	}
	return p, nil
}

// stop tells the process to end, and waits until it has.
func (p *process) stop() {
	p.cancel()
	_ = p.cmd.Wait() // That it was told to end is all that this can say.
}

// logged gives what the process wrote to its standard error, for an error of ours.
func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// answers waits until the process serves the upstream's body.
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
			return fmt.Errorf("proxy: %s does not answer: %w\n%s", p.name, err, p.logged())
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
		return fmt.Errorf("status %d with %d bytes, not 200 with 1024", response.StatusCode, len(body))
	case decided != p.decides:
		return fmt.Errorf("a rule decided: %v, not %v", decided, p.decides)
	}
	return nil
}

// processorTime reads the clock of all processor time that the process has used,
// its ended threads included. /proc/PID/stat says the same in hundredths of a second.
func (p *process) processorTime() (time.Duration, error) {
	const schedulerClock = 2
	var used unix.Timespec
	// The kernel's CPU clock of a process is named by the complement of its id.
	if err := unix.ClockGettime(^int32(p.cmd.Process.Pid)<<3|schedulerClock, &used); err != nil {
		return 0, fmt.Errorf("proxy: processor time of %s: %w\n%s", p.name, err, p.logged())
	}
	return time.Duration(used.Nano()), nil
}

// resident gives the process's memory in bytes, 0 when the kernel does not say.
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
