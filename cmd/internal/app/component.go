package app

import (
	"context"
	"slices"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// Component is one piece of an instance: the guard with its store, a log, a server.
//
// The instance starts and reloads its components in the order of its list, and drains them in
// reverse order. A component may use the components before it. The instance calls Start,
// Reload and Drain one at a time. Several goroutines may call Ready and Status at any time.
type Component interface {
	// Start opens what the component needs, and serves nothing yet: when one component fails,
	// no component has served. begin starts to serve and cannot fail; it may be nil.
	// ctx bounds only the start.
	Start(ctx context.Context) (begin func(), err error)
	// Reload prepares a new configuration. It changes nothing until the caller commits the
	// Change. An error refuses the configuration for all components and leaves nothing to discard.
	Reload(next *config.Config) (Change, error)
	// Drain waits for requests in flight until ctx ends, and then releases all resources. It
	// is called once, even when Start was never called.
	Drain(ctx context.Context) error
	// Ready returns the reason why the component cannot serve yet, or nil.
	Ready() error
	// Metrics adds the component's values for /metrics. It is called once, before any
	// component serves.
	Metrics(c *prom.Config)
	// Status adds the component's values for /api/v1/status.
	Status(s *admin.Status)
}

// Change is a prepared configuration. The caller calls exactly one of its functions, once. A
// nil function means that there is nothing to do.
type Change struct {
	// Commit puts the configuration into effect. It cannot fail.
	Commit func()
	// Discard releases what Reload prepared.
	Discard func()
}

// reloadComponents reloads all components or, after an error, none.
func reloadComponents(components []Component, next *config.Config) error {
	changes := make([]Change, 0, len(components))
	for _, p := range components {
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

// defaults has the methods of a component that does nothing in them.
type defaults struct{}

// Start implements Component.
func (defaults) Start(context.Context) (begin func(), err error) { return begin, nil }

// Reload implements Component.
func (defaults) Reload(*config.Config) (Change, error) { return Change{}, nil }

// Drain implements Component.
func (defaults) Drain(context.Context) error { return nil }

// Ready implements Component.
func (defaults) Ready() error { return nil }

// Metrics implements Component.
func (defaults) Metrics(*prom.Config) {}

// Status implements Component.
func (defaults) Status(*admin.Status) {}

// file is a log or certificate file that each reload opens again, even when the configuration
// is refused: log rotation and certificate renewal must not depend on a valid configuration.
// After an error the previous file stays in use, and the other files are still opened.
type file struct {
	name   string // The value of ReloadFailure.Part.
	reopen func() error
	kept   func(error) // Logs that the previous file stays in use.
}

// reopener is a Component that has files.
type reopener interface{ files() []file }
