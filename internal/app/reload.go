package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/config"
)

// errStopping says that an instance drains.
var errStopping = errors.New("app: the instance is being stopped: start another with the new configuration")

// Reload reads the configuration again and lets it take effect: rules, fair share,
// identity, upstream, header style and bounds of bodies at once; certificates and the
// access log's file are opened again. Counters, shares, bans and requests that wait go
// on. What needs a restart is told to the log. On an error the configuration stays as it was, and the
// error is told to the log, the status and the metrics too; certificates and the access log's file
// are opened again all the same.
func (i *Instance) Reload() error {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	if i.draining.Load() {
		return errStopping
	}
	began := time.Now()
	next, err := i.reload()
	i.reloadEnded(partConfiguration, err)
	i.reopen() // A faulty configuration does not stop the rotation of logs and certificates.
	if err != nil {
		i.tellFaults(err)
		return err
	}
	i.options.Log.Info("the configuration was reloaded", "rules", len(next.Rules), "took", time.Since(began).String())
	return nil
}

// reload changes everything or, on an error, nothing. reloading is held.
func (i *Instance) reload() (*config.Config, error) {
	if i.options.Load == nil {
		return nil, errors.New("app: this instance was started without a file to reload")
	}
	next, err := i.options.Load()
	if err != nil {
		return nil, err
	}
	if err := reloadParts(i.parts, next); err != nil {
		return nil, err
	}
	i.config.Store(next)
	for _, setting := range i.options.Config.NeedsRestart(next) {
		i.options.Log.Warn("a setting takes effect at the next start", "setting", setting)
	}
	return next, nil
}

// reopen opens the files of the parts again. What fails stays as it was, and the rest of
// a reload stands.
func (i *Instance) reopen() {
	for _, p := range i.parts {
		with, ok := p.(reopener)
		if !ok {
			continue
		}
		for _, f := range with.files() {
			err := f.reopen()
			i.reloadEnded(f.name, err)
			if err != nil {
				f.kept(err)
			}
		}
	}
}

// tellFaults logs why a configuration did not take effect, a line for each fault.
func (i *Instance) tellFaults(err error) {
	const message = "the configuration was not reloaded: the one before stays in effect"
	faults, found := errors.AsType[config.Faults](err)
	if !found {
		i.options.Log.Error(message, "error", err)
		return
	}
	for _, f := range faults {
		i.options.Log.Error(message, "at", fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column),
			"field", f.Path, "problem", f.Problem, "fix", f.Fix)
	}
}
