package app

import (
	"context"
	"time"

	"google.golang.org/grpc"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/cmd/internal/front/lease"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/lease/holder"
)

// ruleLeases are the leases that the rules of this process spend. headgate server that gives leases is their server, over
// connections in this process. In a group, they come from its master. Otherwise they come from lease.servers.
type ruleLeases struct {
	client *client.Client
	table  *bucket.Table
	own    *pipe // nil if the leases come from other servers
}

// newRuleLeases makes the leases of rules. It is nil without the section lease, and without a server of leases.
func newRuleLeases(o *Options) (*ruleLeases, error) {
	c := o.Config.Lease
	serves := (o.Server || o.probe) && o.Config.Server != nil && o.Config.Server.GRPC.Address != ""
	if c == nil || !serves && len(c.Servers) == 0 {
		return nil, nil //nolint:nilnil // The section is optional.
	}
	r := &ruleLeases{}
	settings := client.Config{Servers: c.Servers, TokenFile: c.TokenFile, OnLoss: holder.OnLoss(c.OnLoss), Log: o.Log}
	if serves && c.Election != nil {
		if len(c.Election.Servers) == 0 {
			return nil, nil //nolint:nilnil // No rule has a lease.
		}
		settings.Servers, serves = c.Election.Servers, false
	}
	if !serves && settings.TokenFile != "" {
		if _, err := parentToken(settings.TokenFile); err != nil {
			return nil, err
		}
	}
	switch {
	case serves:
		r.own = newPipe()
		settings.Servers, settings.TokenFile, settings.Dial = []string{"this process"}, "", r.own.Dial
	case c.UseTLS:
		secured, err := open.Secure("lease.tls", &c.TLS)
		if err != nil {
			return nil, err
		}
		settings.TLS = secured
	}
	var err error
	if r.client, err = client.New(settings); err != nil {
		return nil, err
	}
	r.table, err = bucket.New(bucket.Config{Source: r.client.Source(), Max: c.MaxLeases, Log: o.Log})
	if err != nil {
		_ = r.client.Close()
		return nil, err
	}
	return r, nil
}

// buckets gives the table for a guard.
func (r *ruleLeases) buckets() *bucket.Table {
	if r == nil {
		return nil
	}
	return r.table
}

// close releases all leases.
func (r *ruleLeases) close() {
	if r != nil {
		r.table.Close()
		_ = r.client.Close()
	}
}

// serve makes the server that gives the leases of a service to the rules of this process.
func (r *ruleLeases) serve(service *lease.Service) *rpc.Server {
	if r == nil || r.own == nil {
		return nil
	}
	const patience, long, memory = 10 * time.Second, 100 * 24 * time.Hour, 16 << 20 // The only client is this process.
	return rpc.New(rpc.Config{
		MaxStreams: 1, MaxCallMemory: memory, HandshakeTimeout: patience, Idle: long, WriteTimeout: patience,
		Keepalive: long, KeepaliveTimeout: patience, MaxAge: long, MaxAgeGrace: patience,
		Services: []func(grpc.ServiceRegistrar){service.Register},
	})
}

// closeOwn ends the server for the rules of this process.
func closeOwn(server *rpc.Server) {
	if server != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Drain(ended) // The client is this process: it has the leases until their ends.
	}
}
