// Package envoy is the room of Envoy's rate limit service in the daemon: the domains of a source outside the file, the counters under the
// names of envoyproxy/ratelimit, and the places that show them. Package cmd/internal/envoy/rls serves the protocol.
package envoy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy/xds"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// DomainSource has the domains of a decision server: a folder of files, or a management server.
// Follow calls apply with all domains at first, and again after each change. An error of apply
// refuses them. Follow calls fault when it cannot get valid domains. It returns when ctx ends.
type DomainSource interface {
	Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error
}

// PartDomains is the part of a reload that takes domains from the source.
const PartDomains = "domains"

// firstDomains bounds how long the start waits for the source's first answer.
const firstDomains = 5 * time.Second

// Domains is the component that follows the source of domains. Its methods take nil for none, but for those of a component.
type Domains struct {
	component.Defaults

	host     *component.Host
	instance component.Configuration
	source   DomainSource
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	answered chan struct{} // Closed at the first answer of the source, good or faulty.
	first    sync.Once
	loaded   atomic.Bool    // The source has given domains.
	heard    atomic.Bool    // The source has given domains, good or refused.
	sourced  []guard.Domain // in force; the lock of instance guards it
}

// NewDomains makes the component; nil without a source.
func NewDomains(host *component.Host, instance component.Configuration, source DomainSource) *Domains {
	if source == nil {
		return nil
	}
	return &Domains{host: host, instance: instance, source: source, answered: make(chan struct{})}
}

// Start follows the source, and waits for its first answer. A source that does not answer does not
// keep the instance from serving: calls then fail until it does.
func (d *Domains) Start(ctx context.Context) (func(), error) {
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.ended.Go(func() {
		if err := d.source.Follow(following, d.apply, d.fault); err != nil && following.Err() == nil {
			d.fault(err)
		}
	})
	patience := time.NewTimer(firstDomains)
	defer patience.Stop()
	select {
	case <-d.answered:
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil, nil //nolint:nilnil // There is nothing to begin.
}

// apply puts domains in force, beside those of the file. After an error the former ones stay.
func (d *Domains) apply(domains []guard.Domain) error {
	defer d.answer()
	defer d.heard.Store(true)
	d.instance.Lock()
	defer d.instance.Unlock()
	if d.instance.Stopping() {
		return component.ErrStopping
	}
	err := d.put(domains)
	if errors.Is(err, component.ErrStopping) {
		return err
	}
	if err != nil {
		d.host.Log.Error("the domains of the source were refused: the former domains stay in effect", "error", err)
		return err
	}
	d.sourced = domains
	d.host.Log.Info("domains were taken from the source", "domains", len(domains))
	return nil
}

// put has the components take domains. The caller holds the lock of instance.
func (d *Domains) put(domains []guard.Domain) error {
	base := d.instance.Base()
	next, err := base.WithDomains(domains)
	if err != nil {
		d.host.ReloadEnded(PartDomains, err)
		return err
	}
	loaded := d.loaded.Swap(true) // Components read it when they commit.
	if err = d.instance.Put(PartDomains, base, next); err != nil {
		d.loaded.Store(loaded)
	}
	return err
}

// fault reports domains that could not be had. The former ones stay in force.
func (d *Domains) fault(err error) {
	defer d.answer()
	if _, refused := errors.AsType[*xds.RefusedError](err); refused {
		d.heard.Store(true)
	}
	d.instance.Lock()
	defer d.instance.Unlock()
	d.host.ReloadEnded(PartDomains, err)
	if faults, found := errors.AsType[config.Faults](err); found {
		d.host.LogFaults(faults)
		return
	}
	d.host.Log.Error("the source gave no valid domains: the former domains stay in effect", "error", err)
}

func (d *Domains) answer() { d.first.Do(func() { close(d.answered) }) }

// Drain ends the following, beside the drain of the other components.
func (d *Domains) Drain(context.Context) error {
	if d.cancel != nil {
		d.cancel()
		d.host.EndsLater("the source of domains", d.ended.Wait)
	}
	return nil
}

// With adds the domains of the source to those of a configuration. The caller holds the lock of the configuration.
func (d *Domains) With(base *config.Config) (*config.Config, error) {
	if d == nil {
		return base.WithDomains(nil)
	}
	return base.WithDomains(d.sourced)
}

// Has reports whether limits are loaded: the source has given some, or there is no source.
func (d *Domains) Has(c *config.Config) bool {
	return d == nil || d.loaded.Load() || len(c.Domains) > 0
}

// Heard reports whether the source has given domains, good or refused.
func (d *Domains) Heard() bool { return d != nil && d.heard.Load() }
