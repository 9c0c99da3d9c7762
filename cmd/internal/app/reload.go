package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// errStopping is the error of Reload after Stop.
var errStopping = errors.New("app: the instance is stopping: start a new instance with the new configuration")

// Reload reads the configuration again. Rules, fair share, identity, upstream, header style
// and timeouts of bodies change at once. Counters, shares, bans and waiters stay. A changed
// setting that needs a restart is logged.
//
// After an error the previous configuration stays in effect. The error is logged and shown in
// the status and the metrics. In both cases, certificates and the access log's file are opened
// again.
func (i *Instance) Reload() error {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	if i.draining.Load() {
		return errStopping
	}
	began := time.Now()
	former := i.base
	i.asked = true
	defer func() { i.asked = false }()
	next, err := i.reload()
	if errors.Is(err, errStopping) {
		return err
	}
	i.reloadEnded(partConfiguration, err)
	i.reopen() // Logs and certificates are rotated even when the configuration is faulty.
	if err != nil {
		i.logFaults(err)
		return err
	}
	i.auditFile(former, i.base)
	i.options.Log.Info("the configuration was reloaded", "rules", len(next.Rules), "took", time.Since(began).String())
	return nil
}

// reload changes everything or, after an error, nothing. The caller holds reloading.
func (i *Instance) reload() (*config.Config, error) {
	if i.options.Load == nil {
		return nil, errors.New("app: this instance has no configuration file to reload: restart it")
	}
	base, err := i.options.Load()
	if err != nil {
		return nil, err
	}
	in, base, err := i.withObjects(base)
	if err != nil {
		return nil, err
	}
	next, err := base.WithDomains(i.sourced)
	if err != nil {
		return nil, err
	}
	if err := i.apply(i.components, next); err != nil {
		return nil, err
	}
	i.base = base
	i.warnUnserved(i.config.Swap(next), next)
	for _, setting := range i.waiting() {
		i.options.Log.Warn("a setting takes effect at the next start", "setting", setting)
	}
	i.objectsReloaded(in)
	return next, nil
}

// reopen opens the files of the components again. After an error the previous file stays in
// use, and the other files are still opened.
func (i *Instance) reopen() {
	for _, p := range i.components {
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

// logFaults logs why a configuration did not take effect, with one line for each fault.
func (i *Instance) logFaults(err error) {
	const message = "the configuration was not reloaded: the previous configuration stays in effect"
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
