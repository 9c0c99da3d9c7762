// Package component defines a piece of an instance: the rules with their store, the leases, a log, a server. Each feature's
// folder has its component, and cmd/internal/app makes the list of them.
//
// A component adds its metrics, its status and its admin calls itself. It gets a Host and the few other components that it
// uses, and never the instance.
package component

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// Component is one piece of an instance.
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
	// Attention adds what an operator should see about the component now. Each text is a sentence that says what to do. It must not
	// wait for a server.
	Attention(add func(admin.Attention))
	// Calls lists the component's calls of the admin listener. docs/security.md lists them too.
	Calls() []calls.Call
}

// Change is a prepared configuration. The caller calls exactly one of its functions, once. A
// nil function means that there is nothing to do.
type Change struct {
	// Commit puts the configuration into effect. It cannot fail.
	Commit func()
	// Discard releases what Reload prepared.
	Discard func()
}

// Reload reloads all components or, after an error, none.
func Reload(components []Component, next *config.Config) error {
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

// Defaults has the methods of a component that does nothing in them.
type Defaults struct{}

// Start implements Component.
func (Defaults) Start(context.Context) (begin func(), err error) { return begin, nil }

// Reload implements Component.
func (Defaults) Reload(*config.Config) (Change, error) { return Change{}, nil }

// Drain implements Component.
func (Defaults) Drain(context.Context) error { return nil }

// Ready implements Component.
func (Defaults) Ready() error { return nil }

// Metrics implements Component.
func (Defaults) Metrics(*prom.Config) {}

// Status implements Component.
func (Defaults) Status(*admin.Status) {}

// Attention implements Component.
func (Defaults) Attention(func(admin.Attention)) {}

// Calls implements Component.
func (Defaults) Calls() []calls.Call { return nil }

// File is a log or certificate file that each reload opens again, even when the configuration
// is refused: log rotation and certificate renewal must not depend on a valid configuration.
// After an error the previous file stays in use, and the other files are still opened.
type File struct {
	Name   string // The value of ReloadFailure.Part.
	Reopen func() error
	Kept   func(error) // Logs that the previous file stays in use.
}

// Reopener is a Component that has files.
type Reopener interface{ Files() []File }

// Configuration is the configuration of an instance, for a component that changes it. The caller of all other methods holds
// its lock, under which the configuration is read and replaced.
type Configuration interface {
	sync.Locker
	// Stopping reports that no component takes a configuration any more. It needs no lock.
	Stopping() bool
	// Base is the configuration of the file and of the objects of the source.
	Base() *config.Config
	// WithDomains adds the domains of their source to a Base.
	WithDomains(base *config.Config) (*config.Config, error)
	// Put has components take next or, after an error, none of them, and records the result of the part. only are the
	// components that a change concerns; none stand for all. base is the Base of next.
	Put(part string, base, next *config.Config, only ...Component) error
	// Again has the components that decide take the configuration in effect again, for modes that have changed at run time.
	Again() error
}

// Overlay is what operators have changed at run time, on top of the configuration of the file and the source.
type Overlay interface {
	// Over gives a copy of next with the changes, or next itself without one. It changes nothing in next.
	Over(next *config.Config) *config.Config
}

// ListenError is the error of a listener that cannot be opened.
func ListenError(setting string, err error) error {
	return &config.SettingError{Path: setting, Err: fmt.Errorf("app: %s: %w", setting, err)}
}

// ProbeListener finds why a listener could not be opened at an address, as far as the address shows it.
func ProbeListener(setting, address string) error {
	if problem := listen.Probe(address); problem != nil {
		return ListenError(setting, problem)
	}
	return nil
}
