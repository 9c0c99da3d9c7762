package app

import (
	"errors"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin/listener"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/console"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/lease"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/proxy"
	"github.com/headgate/headgate/cmd/internal/quota"
	"github.com/headgate/headgate/cmd/internal/rules"
	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/cmd/internal/source"
	"github.com/headgate/headgate/internal/config"
)

// makeComponents creates the list of components and reports all faults at once. Start and
// Probe call it. A component stands behind the components that it uses. The proxy or the decision
// service is last, so that it is drained first, and the admin listener answers meanwhile.
func (i *Instance) makeComponents() error {
	o := &i.options
	used := quota.NewMetering(o.Log, o.Config)
	var meteringFault error
	if used != nil {
		if o.probe {
			meteringFault = used.Probe()
		}
		i.add(used)
	}
	leases, err := lease.New(o.Log, o.Config, o.Server || o.probe)
	if err != nil {
		return errors.Join(meteringFault, o.Config.Located(err))
	}
	i.leases = leases
	i.add(leases)
	deciding, err := rules.New(i.host, o.Config, used.Meter(), leases.Buckets())
	if err == nil {
		i.rules = deciding
		i.add(deciding.Components()...)
	}
	err = errors.Join(meteringFault, err)
	if o.Level != nil {
		i.add(&logLevel{level: o.Level})
	}
	var accessFault error
	if !o.Server {
		if i.accessLog, accessFault = proxy.NewAccessLog(i.host, &o.Config.Log, o.AccessOutput); i.accessLog != nil {
			i.add(i.accessLog)
		}
	}
	callers, callersFault := access.NewComponent(i.host, o.Config, i.trusts)
	if callersFault != nil {
		return errors.Join(err, accessFault, o.Config.Located(callersFault), i.makeProxy())
	}
	i.access = callers
	operators, operatorsFault := listener.New(listener.Options{
		Host: i.host, Config: o.Config, Instance: admitted{i}, Access: callers, Version: o.Version, Commit: o.Commit,
	})
	if operatorsFault != nil {
		return errors.Join(err, accessFault, o.Config.Located(operatorsFault), i.makeProxy())
	}
	i.add(callers, operators)
	if i.rules != nil {
		i.add(i.rules.Modes(configuration{i}))
		i.objects = objects.New(o.Log, i.config.Load)
		i.add(i.objects, quota.NewUsage(o.Log, i.rules.Guard(), i.objects))
		i.add(console.New(console.Options{
			Host: i.host, Config: i.config.Load, Instance: configuration{i}, Rules: i.rules,
			Components: func() []component.Component { return i.components }, Waiting: i.waiting, Failures: i.reloads.List,
			Version: o.Version, Started: i.started, Server: o.Server, Admin: operators.Address,
		})...)
	}
	return errors.Join(err, accessFault, i.makeProxy(), i.makeServer(), i.makeSource())
}

// add adds components. Those that change the configuration at run time do so in the order of the list: the modes first, and then what
// adds limits and rules.
func (i *Instance) add(more ...component.Component) {
	i.components = append(i.components, more...)
	for _, c := range more {
		if o, is := c.(component.Overlay); is {
			i.overlays = append(i.overlays, o)
		}
	}
}

// makeSource creates the follower of the source, if there is one. It stands behind all components that it reloads.
func (i *Instance) makeSource() error {
	if i.options.Config.Source == nil || i.rules == nil {
		return nil
	}
	f, err := source.New(i.host, configuration{i}, i.options.Config, i.rules.QuotasOnly())
	if err == nil {
		i.source = f
		i.objects.Followed = f
		f.Keeps(i.components)
		i.add(f)
	}
	return err
}

// makeProxy creates the proxy, unless the instance serves the section server. Without rules it
// only reports faults of the proxy's files.
func (i *Instance) makeProxy() error {
	if i.options.Server {
		return nil
	}
	o := proxy.Options{Host: i.host, Config: i.options.Config, Access: i.accessLog, Memory: i.memory}
	if i.rules != nil {
		o.Guard, o.Report = i.rules.Guard(), i.rules.Report()
	}
	front, err := proxy.New(o)
	if front != nil {
		i.add(front)
	}
	return err
}

// makeServer creates the decision service, if the instance serves it or checks its section.
func (i *Instance) makeServer() error {
	o := &i.options
	if o.Config.Server == nil || !o.Server && !o.probe {
		return nil
	}
	if o.Outlets == nil {
		outlets, err := envoy.Configured(o.Config)
		if err != nil {
			return err
		}
		o.Outlets = outlets
	}
	made := server.Options{
		Host: i.host, Config: o.Config, InEffect: i.config.Load, Healthy: i.healthy, Rules: i.rules, Access: i.access, Leases: i.leases,
		Memory: i.memory, Version: o.Version,
	}
	if i.rules != nil {
		limits, err := envoy.NewService(i.rules.Guard(), i.rules.Report(), i.domains, o.Outlets, o.Config)
		if err != nil {
			return err
		}
		made.Limits = limits
	}
	front, err := server.New(made)
	err = errors.Join(err, server.Undecidable(o.Config))
	if err == nil && front != nil {
		i.add(front)
		if o.Outlets != nil {
			i.add(envoy.NewOutlets(i.host, made.Limits, o.Outlets, i.config.Load))
		}
		if i.domains != nil {
			i.add(i.domains)
		}
	}
	return err
}

// Again implements component.Configuration.
func (c configuration) Again() error { return c.apply(c.rules.Components(), c.config.Load()) }

// healthy reports whether objects and limits are loaded as far as they must be, and no drain has begun.
func (i *Instance) healthy() bool {
	o := &i.options
	return !i.draining.Load() && (i.source == nil || i.source.Known()) &&
		(!o.HealthyWithDomains || i.domains.Has(i.config.Load())) && (!o.HealthyAfterDomains || i.domains.Heard())
}

// configuration is the configuration of an instance, for the components that change it.
type configuration struct{ *Instance }

// Lock implements component.Configuration.
func (c configuration) Lock() { c.reloading.Lock() }

// Unlock implements component.Configuration.
func (c configuration) Unlock() { c.reloading.Unlock() }

// Stopping implements component.Configuration.
func (c configuration) Stopping() bool { return c.draining.Load() }

// Base implements component.Configuration.
func (c configuration) Base() *config.Config { return c.base }

// WithDomains implements component.Configuration.
func (c configuration) WithDomains(base *config.Config) (*config.Config, error) {
	return c.domains.With(base)
}

// Put implements component.Configuration.
func (c configuration) Put(part string, base, next *config.Config, only ...component.Component) error {
	if len(only) == 0 {
		only = c.components
	}
	err := c.apply(only, next)
	if errors.Is(err, component.ErrStopping) {
		return err
	}
	if c.reloadEnded(part, err); err != nil {
		return err
	}
	i := c.Instance
	i.base = base
	i.config.Store(next)
	return nil
}
