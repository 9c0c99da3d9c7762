package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/xds"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// DomainSource has the domains of a decision server: a folder of files, or a management server.
// Follow calls apply with all domains at first, and again after each change. An error of apply
// refuses them. Follow calls fault when it cannot get valid domains. It returns when ctx ends.
type DomainSource interface {
	Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error
}

// partDomains is the part of a reload that takes domains from the source.
const partDomains = "domains"

// firstDomains bounds how long the start waits for the source's first answer.
const firstDomains = 5 * time.Second

// domainFollower is the component that follows the source of domains.
type domainFollower struct {
	defaults

	instance *Instance
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	answered chan struct{} // Closed at the first answer of the source, good or faulty.
	first    sync.Once
}

func newDomainFollower(i *Instance) *domainFollower {
	return &domainFollower{instance: i, answered: make(chan struct{})}
}

// Start follows the source, and waits for its first answer. A source that does not answer does not
// keep the instance from serving: calls then fail until it does.
func (f *domainFollower) Start(ctx context.Context) (func(), error) {
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.ended.Go(func() {
		if err := f.instance.options.Domains.Follow(following, f.apply, f.fault); err != nil && following.Err() == nil {
			f.fault(err)
		}
	})
	patience := time.NewTimer(firstDomains)
	defer patience.Stop()
	select {
	case <-f.answered:
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil, nil //nolint:nilnil // There is nothing to begin.
}

// apply puts domains in force.
func (f *domainFollower) apply(domains []guard.Domain) error {
	defer f.answer()
	defer f.instance.heard.Store(true)
	return f.instance.applyDomains(domains)
}

// fault reports domains that could not be had. The former ones stay in force.
func (f *domainFollower) fault(err error) {
	defer f.answer()
	if _, refused := errors.AsType[*xds.RefusedError](err); refused {
		f.instance.heard.Store(true)
	}
	f.instance.domainsFailed(err)
}

func (f *domainFollower) answer() { f.first.Do(func() { close(f.answered) }) }

// Drain ends the following, beside the drain of the other components.
func (f *domainFollower) Drain(context.Context) error {
	if f.cancel != nil {
		f.cancel()
		f.instance.endsLater("the source of domains", f.ended.Wait)
	}
	return nil
}

// applyDomains puts the domains of the source in force, beside those of the file. After an error the
// former ones stay.
func (i *Instance) applyDomains(domains []guard.Domain) error {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	if i.draining.Load() {
		return errStopping
	}
	next, err := i.base.WithDomains(domains)
	if err == nil {
		loaded := i.loaded.Swap(true) // Components read it when they commit.
		if err = i.apply(i.components, next); err != nil {
			i.loaded.Store(loaded)
		}
	}
	if errors.Is(err, errStopping) {
		return err
	}
	i.reloadEnded(partDomains, err)
	if err != nil {
		i.options.Log.Error("the domains of the source were refused: the former domains stay in effect", "error", err)
		return err
	}
	i.sourced = domains
	i.config.Store(next)
	i.options.Log.Info("domains were taken from the source", "domains", len(domains))
	return nil
}

// domainsFailed reports that the source has no valid domains.
func (i *Instance) domainsFailed(err error) {
	i.reloading.Lock()
	defer i.reloading.Unlock()
	i.reloadEnded(partDomains, err)
	if faults, found := errors.AsType[config.Faults](err); found {
		i.logFaults(faults)
		return
	}
	i.options.Log.Error("the source gave no valid domains: the former domains stay in effect", "error", err)
}

// hasDomains reports whether limits are loaded: the source has given some, or there is no source.
func (i *Instance) hasDomains(c *config.Config) bool {
	return i.options.Domains == nil || i.loaded.Load() || len(c.Domains) > 0
}
