package app

import (
	"context"
	"slices"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/report/prom"
)

// Part is one piece of an instance with a life of its own: what decides, a log, a proxy.
//
// The instance starts and reloads its parts in the order of its list, and drains them in
// reverse order: a part may use those before it. Start, Reload and Drain are called one at
// a time. Ready, Metrics and Status may be called at any time by several goroutines.
type Part interface {
	// Start opens what the part needs, and serves nothing yet: after an error of any part
	// nothing was served. begin begins to serve and cannot fail; nil is nothing to serve.
	// ctx bounds the start alone.
	Start(ctx context.Context) (begin func(), err error)
	// Reload prepares another configuration. Nothing changes before the change is committed.
	// An error refuses the configuration for all parts, and leaves nothing to discard.
	Reload(next *config.Config) (Change, error)
	// Drain lets what is in flight end until ctx does, then frees what the part has. It is
	// called once, also for a part that was never started.
	Drain(ctx context.Context) error
	// Ready returns why the part cannot serve requests yet; nil is ready.
	Ready() error
	// Metrics adds what the part shows in /metrics. It is called once, before any part serves.
	Metrics(c *prom.Config)
	// Status adds what the part shows in /api/v1/status.
	Status(s *admin.Status)
}

// Change is a configuration that a part has prepared. Exactly one of the two functions is
// called, once; nil is nothing to do.
type Change struct {
	// Commit makes the part follow the configuration. It cannot fail.
	Commit func()
	// Discard frees what was prepared.
	Discard func()
}

// reloadParts makes all parts follow a configuration or, on an error, none of them.
func reloadParts(parts []Part, next *config.Config) error {
	changes := make([]Change, 0, len(parts))
	for _, p := range parts {
		c, err := p.Reload(next)
		if err != nil {
			for _, prepared := range slices.Backward(changes) {
				call(prepared.Discard)
			}
			return err
		}
		changes = append(changes, c)
	}
	for _, prepared := range changes {
		call(prepared.Commit)
	}
	return nil
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// defaults are the methods of a part that has nothing to do in them.
type defaults struct{}

// Start implements Part.
func (defaults) Start(context.Context) (begin func(), err error) { return begin, nil }

// Reload implements Part.
func (defaults) Reload(*config.Config) (Change, error) { return Change{}, nil }

// Drain implements Part.
func (defaults) Drain(context.Context) error { return nil }

// Ready implements Part.
func (defaults) Ready() error { return nil }

// Metrics implements Part.
func (defaults) Metrics(*prom.Config) {}

// Status implements Part.
func (defaults) Status(*admin.Status) {}

// file is what a part opens anew at each reload, after a refused one too: logs are rotated
// and certificates renewed while a configuration is at fault. It stays as it was when that
// fails, and the rest of the reload stands.
type file struct {
	name   string // as ReloadFailure.Part has it
	reopen func() error
	kept   func(error) // logs why it stays as it was
}

// reopener is a Part that has files.
type reopener interface{ files() []file }
