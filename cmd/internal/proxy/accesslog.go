package proxy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// partAccessLog is the part of a reload that opens the log's file again.
const partAccessLog = "access log"

// AccessLog is the component that writes one line for each request of the proxy.
type AccessLog struct {
	component.Defaults

	host    *component.Host
	output  io.Writer
	opened  atomic.Pointer[openedLog] // nil while the access log is off
	former  *openedLog                // replaced, and perhaps still in use; guarded by the caller of Reload
	closing sync.WaitGroup

	mu      sync.Mutex   // guards the lines of all logs, so that their sum never goes down
	dropped uint64       // lines of former logs that have ended
	ending  []*openedLog // former logs that have not ended
}

// openedLog is a log with the settings that it was opened with.
type openedLog struct {
	*accesslog.Log

	format config.AccessFormat
	file   string
}

// NewAccessLog opens the log of a configuration. output receives the lines when no file is configured; nil means standard output.
func NewAccessLog(host *component.Host, c *config.Log, output io.Writer) (*AccessLog, error) {
	a := &AccessLog{host: host, output: output}
	opened, err := a.open(c)
	a.opened.Store(opened)
	return a, err
}

// open opens the log of a configuration. It returns nil if the log is off, and for a probe.
func (a *AccessLog) open(c *config.Log) (*openedLog, error) {
	if c.Access == config.AccessOff {
		return nil, nil //nolint:nilnil // because no access log is configured
	}
	format, ok := accesslog.ParseFormat(string(c.Access))
	if !ok {
		return nil, fmt.Errorf("app: unknown log.access %q: write off, json or combined", c.Access)
	}
	if a.host.Probe {
		if err := probeAccessLog(c.AccessFile); err != nil {
			return nil, &config.SettingError{Path: "log.access_file", Err: fmt.Errorf("app: log.access_file: %w", err)}
		}
		return nil, nil //nolint:nilnil // because a probe leaves no file behind
	}
	log, err := accesslog.Open(accesslog.Config{
		Format: format, File: c.AccessFile, Output: a.output, Report: a.host.Log,
	})
	if err != nil {
		return nil, &config.SettingError{Path: "log.access_file", Err: fmt.Errorf("app: log.access_file: %w", err)}
	}
	return &openedLog{log, c.Access, c.AccessFile}, nil
}

// Current is the log in use; nil while the access log is off.
func (a *AccessLog) Current() *accesslog.Log {
	if a == nil {
		return nil
	}
	if now := a.opened.Load(); now != nil {
		return now.Log
	}
	return nil
}

// Lost is the number of dropped lines.
func (a *AccessLog) Lost() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.dropped
	for _, former := range a.ending {
		n += former.Dropped()
	}
	if now := a.Current(); now != nil {
		n += now.Dropped()
	}
	return n
}

// Reload prepares another log, if the format or the file changes.
func (a *AccessLog) Reload(next *config.Config) (component.Change, error) {
	now, c := a.opened.Load(), &next.Log
	if now == nil && c.Access == config.AccessOff || now != nil && now.format == c.Access && now.file == c.AccessFile {
		return component.Change{}, nil
	}
	opened, err := a.open(c)
	if err != nil {
		return component.Change{}, err
	}
	return component.Change{
		Commit:  func() { a.replace(opened) },
		Discard: func() { _ = opened.close() }, // The log has no lines.
	}, nil
}

// replace puts a log in place of the one in use.
func (a *AccessLog) replace(opened *openedLog) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.former = a.opened.Swap(opened)
	if a.former != nil {
		a.ending = append(a.ending, a.former)
	}
}

// Retire closes the former log, after the proxy has the new one.
func (a *AccessLog) Retire() {
	if former := a.former; former != nil {
		a.former = nil
		a.closing.Go(func() {
			a.end(former)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.dropped += former.Dropped()
			a.ending = slices.DeleteFunc(a.ending, func(o *openedLog) bool { return o == former })
		})
	}
}

// end writes the buffered lines of a log, and closes it.
func (a *AccessLog) end(log *openedLog) {
	if err := log.close(); err != nil {
		a.host.Log.Error("access log not closed cleanly: the last lines may be missing", "error", err)
	}
}

func (o *openedLog) close() error {
	if o == nil {
		return nil
	}
	return o.Close()
}

// Files implements component.Reopener.
func (a *AccessLog) Files() []component.File {
	now := a.opened.Load()
	if now == nil {
		return nil
	}
	return []component.File{{Name: partAccessLog, Reopen: now.Reopen, Kept: func(err error) {
		a.host.Log.Error("access log file not opened again: lines still go to the previous file", "error", err)
	}}}
}

// Drain writes the buffered lines.
func (a *AccessLog) Drain(ctx context.Context) error {
	ctx, cancel := component.Lastly(ctx, component.LastDrain)
	defer cancel()
	a.Retire()
	ended := component.Within(ctx, func() {
		a.end(a.opened.Load())
		a.closing.Wait()
	})
	if !ended {
		a.host.Log.Error("access log not closed cleanly: the last lines may be missing: check the reader of the log")
	}
	return nil
}

// probeAccessLog checks the access log's file without creating it.
func probeAccessLog(path string) error {
	if path == "" {
		return nil
	}
	return accesslog.Probe(path)
}
