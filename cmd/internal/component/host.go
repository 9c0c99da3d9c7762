package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/headgate/headgate/cmd/internal/actions"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/config"
)

// Host runs the servers of an instance's components, and what they end. Make one with NewHost.
type Host struct {
	Log *slog.Logger
	// Probe says that the instance only checks a configuration: it warns of nothing, makes no connection and leaves no file.
	Probe bool
	// random names the instance, unless its configuration does. It tells nothing about the machine.
	random string
	// Inherited are the sockets that the process got from its parent.
	Inherited listen.Inherited
	// Actions remembers what operators change at run time.
	Actions *actions.Ring
	// ReloadEnded records the result of a part's reload for status and metrics.
	ReloadEnded func(part string, err error)

	// History has the last reloads and changes of the source.
	History History

	serving sync.WaitGroup
	failed  chan error // Has the error of the first server that ended by itself.
	ending  []ending   // of components that have been drained
}

// ending is something that ends while components drain.
type ending struct {
	what  string
	ended chan struct{}
}

// NewHost makes a host.
func NewHost(log *slog.Logger, probe bool, reloadEnded func(part string, err error)) *Host {
	return &Host{
		Log: log, Probe: probe, Actions: new(actions.Ring), ReloadEnded: reloadEnded, failed: make(chan error, 1),
		random: fmt.Sprintf("%08x", rand.Uint32()),
	}
}

// Name is the name of the instance under a configuration.
func (h *Host) Name(c *config.Config) string { return cmp.Or(c.Instance, h.random) }

// NameToClients is the Name for the field Headgate-Decision; "" without the field.
func (h *Host) NameToClients(c *config.Config) string {
	if !c.DecisionHeader {
		return ""
	}
	return h.Name(c)
}

// Reloaded returns the callback of a handshake that found changed files of a part.
func (h *Host) Reloaded(part string) func(error) {
	return func(err error) { h.ReloadEnded(part, err) }
}

// Serve runs a server in its own goroutine. The first server that fails ends the instance.
func (h *Host) Serve(server func() error) {
	h.serving.Go(func() {
		err := server()
		if err == nil {
			return
		}
		select {
		case h.failed <- err:
		default:
		}
	})
}

// Failed receives the error of the first server that ends by itself.
func (h *Host) Failed() <-chan error { return h.failed }

// EndsLater lets something end while the other components drain. The instance waits for it for LastOfOne after them, and then goes on
// without it.
func (h *Host) EndsLater(what string, end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	h.ending = append(h.ending, ending{what, ended})
}

// Wait waits for all servers, and for everything of EndsLater.
func (h *Host) Wait(ctx context.Context) {
	h.serving.Wait()
	ctx, cancel := Lastly(ctx, LastOfOne)
	defer cancel()
	for _, e := range h.ending {
		select {
		case <-e.ended:
		case <-ctx.Done():
			h.Log.Warn("the process does not wait for a part that has not ended", "part", e.what)
		}
	}
}

// LogFaults logs why a configuration did not take effect, with one line for each fault.
func (h *Host) LogFaults(err error) {
	const message = "the configuration was not reloaded: the previous configuration stays in effect"
	faults, found := errors.AsType[config.Faults](err)
	if !found {
		h.Log.Error(message, "error", err)
		return
	}
	for _, f := range faults {
		h.Log.Error(message, "at", fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column),
			"field", f.Path, "problem", f.Problem, "fix", f.Fix)
	}
}
