package lease

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
)

// candidate takes part in the elections of a group of lease servers.
type candidate struct {
	election *election.Election
	group    string
	address  string // of this server, for clients
	granted  *Granted
	since    time.Time // The beginning of the clock of granted.
	marks    *marks    // nil for a server with a parent, which asks the parent what is out
	climbs   bool      // The stream to the parent is open.
	stop     context.CancelFunc
	ended    sync.WaitGroup
}

// newCandidate makes the candidate of a configuration. It is nil for a server that is alone.
func newCandidate(all *config.Config, parent *Granted) (*candidate, error) {
	c := all.Lease
	e := c.Election
	if e == nil {
		return nil, nil //nolint:nilnil // A server may be alone.
	}
	described := etcd.Config{Endpoints: e.Etcd, User: e.User, Timeout: max(e.TTL/2, time.Second)}
	var err error
	if e.UseTLS {
		if described.TLS, err = open.Secure("lease.election.tls", &e.TLS); err != nil {
			return nil, err
		}
	}
	if described.Password, err = open.Password("lease.election.password_file", e.PasswordFile); err != nil {
		return nil, err
	}
	address, err := memberAddress(e, all.Server.GRPC.Address)
	if err != nil {
		return nil, err
	}
	elected, err := election.New(election.Config{
		Open:  func(life context.Context) (*clientv3.Client, error) { return etcd.Dial(life, described) },
		Group: e.Group, Address: address, TTL: e.TTL, Log: parent.log,
	})
	if err != nil {
		return nil, err
	}
	made := &candidate{election: elected, group: e.Group, address: address, granted: parent, since: parent.since}
	if len(c.Servers) == 0 {
		made.marks = newMarks(elected, parent)
	}
	return made, nil
}

// memberAddress is electedAddress. The error says that lease.election.servers does not have the address.
func memberAddress(e *config.LeaseElection, listener string) (string, error) {
	address, err := electedAddress(e, listener)
	if err != nil {
		return "", err
	}
	if len(e.Servers) > 0 && !slices.Contains(e.Servers, address) {
		const setting = "lease.election.servers"
		return "", &config.SettingError{Path: setting, Err: fmt.Errorf("app: %s does not have %s, the address of this server: add it, "+
			"or correct lease.election.address", setting, address)}
	}
	return address, nil
}

// CheckElection refuses an election of a reload that the next start would refuse. Unchanged settings have passed at the start. They
// are not checked again: the name of the machine may have changed since, which must not stop each reload.
func CheckElection(started, next *config.Config) error {
	if next.Lease == nil || next.Lease.Election == nil || next.Server.GRPC.Address == "" {
		return nil
	}
	e, listener := next.Lease.Election, next.Server.GRPC.Address
	if started.Lease != nil && started.Lease.Election != nil && started.Server.GRPC.Address == listener &&
		started.Lease.Election.Address == e.Address && slices.Equal(started.Lease.Election.Servers, e.Servers) {
		return nil
	}
	_, err := memberAddress(e, listener)
	return err
}

// electedAddress is the address to which the other servers of the group send clients.
func electedAddress(e *config.LeaseElection, listener string) (string, error) {
	if e.Address != "" {
		return e.Address, nil
	}
	host, port, err := net.SplitHostPort(listener)
	if err != nil {
		return "", err
	}
	if at := net.ParseIP(host); host == "" || at != nil && at.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// start takes part until end.
func (c *candidate) start() {
	if c == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.ended.Go(func() { c.election.Run(ctx, c.show) })
	if c.marks != nil {
		c.ended.Go(func() { c.marks.run(ctx) })
	}
}

// show takes a status of the election. Only the master has a stream to the parent.
func (c *candidate) show(s election.Status) {
	l := c.granted
	if !s.Mine {
		l.service.Follow(s.Master)
		if c.climbs {
			c.climbs = false
			l.up.Close()
		}
		return
	}
	var marks map[string]int64
	if c.marks != nil && !l.service.HasTerm(s.Term) {
		marks = c.marks.begin(s.Term)
	}
	if err := l.service.Lead(s.Term, headgate.Instant(s.Until.Sub(c.since)), marks); err != nil {
		l.log.Error("no leases: correct the section lease", "error", err) // New has checked the same settings.
		return
	}
	if l.up != nil && !c.climbs {
		c.climbs = true
		l.up.Start(l.service)
	}
}

// end leaves the group, so that another server becomes the master at once.
func (c *candidate) end() {
	if c == nil || c.stop == nil {
		return
	}
	c.stop()
	c.ended.Wait()
}
