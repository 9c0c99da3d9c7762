package app

import (
	"errors"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/source"
	"github.com/headgate/headgate/internal/config"
)

// Reload reads the configuration again. Rules, fair share, identity, upstream, header style
// and timeouts of bodies change at once. Counters, shares, bans and waiters stay. A changed
// setting that needs a restart is logged.
//
// After an error the previous configuration stays in effect. The error is logged and shown in
// the status and the metrics. In both cases, certificates and the access log's file are opened
// again.
func (i *Instance) Reload() error { return i.reloadBy("program") }

// reloadBy is Reload with its cause, for the history.
func (i *Instance) reloadBy(cause string) error {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	if i.draining.Load() {
		return component.ErrStopping
	}
	began := time.Now()
	former := i.base
	i.asked = true
	defer func() { i.asked = false }()
	next, err := i.reload()
	if errors.Is(err, component.ErrStopping) {
		return err
	}
	i.reloadEnded(partConfiguration, err)
	var names []string
	if err == nil {
		names = config.Difference(former, i.base)
	}
	i.host.History.Add(began, cause, names, i.waiting(), err)
	i.reopen() // Logs and certificates are rotated even when the configuration is faulty.
	if err != nil {
		i.host.LogFaults(err)
		return err
	}
	source.AuditFile(i.options.Log, former, i.base)
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
	var in *config.Objects
	if i.source != nil {
		if in, base, err = i.source.WithObjects(base); err != nil {
			return nil, err
		}
	}
	next, err := i.domains.With(base)
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
	if i.source != nil {
		i.source.Reloaded(in)
	}
	return next, nil
}

// reopen opens the files of the components again. After an error the previous file stays in
// use, and the other files are still opened.
func (i *Instance) reopen() {
	for _, p := range i.components {
		with, ok := p.(component.Reopener)
		if !ok {
			continue
		}
		for _, f := range with.Files() {
			err := f.Reopen()
			i.reloadEnded(f.Name, err)
			if err != nil {
				f.Kept(err)
			}
		}
	}
}
