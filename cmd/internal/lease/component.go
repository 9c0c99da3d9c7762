// Package lease is the room of leases in the daemon: the leases that the rules of an instance spend, and those that headgate server
// gives to others, with the limits of headgate ctl limit, elections, metrics and the call of headgate ctl leases.
//
// Package front serves the protocol, and package election elects the master of a group.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/bucket"
)

// Component is the component of leases. It stands before the rules, which spend them.
type Component struct {
	component.Defaults

	log     *slog.Logger
	rules   *Rules   // nil without leases for rules
	granted *Granted // nil unless the instance gives leases
}

// New makes the component. serves says that the instance serves the section server, or checks it.
func New(log *slog.Logger, c *config.Config, serves bool) (*Component, error) {
	rules, err := newRules(log, c, serves)
	return &Component{log: log, rules: rules}, err
}

// Grant makes the service that gives leases on the gRPC listener. It is nil without the section lease.
func (c *Component) Grant(all *config.Config) (*Granted, error) {
	granted, err := newGranted(c.log, all, c.rules)
	if err == nil {
		c.granted = granted
	}
	return granted, err
}

// Buckets is the table from which the rules of a guard take; nil without leases for rules.
func (c *Component) Buckets() *bucket.Table {
	if c.rules == nil {
		return nil
	}
	return c.rules.table
}

// Reload implements component.Component. The server reloads what it gives.
func (c *Component) Reload(next *config.Config) (component.Change, error) {
	if c.rules == nil && slices.ContainsFunc(next.Rules, func(one guard.Rule) bool { return one.Lease.Resource != "" }) {
		return component.Change{}, errors.New("app: the first rule with a lease needs leases that begin at the start: restart headgate")
	}
	return component.Change{}, nil
}

// Drain releases the leases of the rules.
func (c *Component) Drain(context.Context) error {
	c.rules.close()
	return nil
}

// Metrics implements component.Component.
func (c *Component) Metrics(to *prom.Config) {
	if c.rules != nil {
		to.Collectors = append(to.Collectors, prom.RuleLeases(c.rules.table.Stats))
	}
	if c.granted != nil {
		to.Leases = c.granted.state
	}
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{
		{Pattern: "GET /api/v1/leases", Scope: config.ScopeRead, Handler: calls.OwnSite(calls.Parameters(c.log, c.list, "resource"))},
	}
}
