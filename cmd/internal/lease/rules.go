package lease

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/cmd/internal/lease/front"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/lease/holder"
)

// Rules are the leases that the rules of this process spend. headgate server that gives leases is their server, over
// connections in this process. In a group, they come from its master. Otherwise they come from lease.servers.
type Rules struct {
	client *client.Client
	table  *bucket.Table
	own    *pipe // nil if the leases come from other servers
}

// newRules makes the leases of rules. It is nil without the section lease, and without a server of leases. serves says that the
// instance serves the section server, or checks it.
func newRules(log *slog.Logger, all *config.Config, serves bool) (*Rules, error) {
	c := all.Lease
	serves = serves && all.Server != nil && all.Server.GRPC.Address != ""
	if c == nil || !serves && len(c.Servers) == 0 {
		return nil, nil //nolint:nilnil // The section is optional.
	}
	r := &Rules{}
	settings := client.Config{Servers: c.Servers, TokenFile: c.TokenFile, OnLoss: holder.OnLoss(c.OnLoss), Log: log}
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
	r.table, err = bucket.New(bucket.Config{Source: r.client.Source(), Max: c.MaxLeases, Log: log})
	if err != nil {
		_ = r.client.Close()
		return nil, err
	}
	return r, nil
}

// close releases all leases.
func (r *Rules) close() {
	if r != nil {
		r.table.Close()
		_ = r.client.Close()
	}
}

// serve makes the server that gives the leases of a service to the rules of this process.
func (r *Rules) serve(service *front.Service) *rpc.Server {
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
