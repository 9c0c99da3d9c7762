package app

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/front/lease"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/readfile"
)

// leases gives capacity leases on the gRPC listener.
type leases struct {
	service   *lease.Service
	up        *lease.Uplink // nil for a root
	held      *ruleLeases
	own       *rpc.Server // gives leases to held; nil without it
	candidate *candidate  // nil for a server that is alone
	since     time.Time   // The beginning of the clock of service.
	log       *slog.Logger
	limits    *leaseLimits // nil without lease.limits

	mu   sync.Mutex
	file *config.Lease // has the resources and holders in effect
}

// newLeases makes the service of the section lease. It is nil without the section.
func newLeases(i *Instance) (*leases, error) {
	c := i.options.Config.Lease
	if c == nil || i.options.Config.Server.GRPC.Address == "" {
		return nil, nil //nolint:nilnil // The section is optional, and rules may use it alone.
	}
	l := &leases{held: i.held, since: time.Now(), log: i.options.Log, file: c}
	var err error
	if l.limits, err = newLeaseLimits(i, c, l.configure); err != nil {
		return nil, err
	}
	o := lease.Options{
		State: leaseState(c, l.limits.over(c.Resources)), Now: l.now,
		MaxAge: i.options.Config.Server.GRPC.MaxConnectionAge, Elected: c.Election != nil,
	}
	if len(c.Servers) > 0 {
		up, err := newUplink(i, c)
		if err != nil {
			return nil, err
		}
		l.up, o.Up = up, up.Up
	}
	if o.Elected && len(c.Servers) == 0 {
		o.Marks = l.mark
	}
	service, err := lease.New(o)
	if err != nil {
		return nil, err
	}
	l.service, l.own = service, l.held.serve(service)
	l.candidate, err = newCandidate(i, c, l)
	return l, err
}

// now is a clock that begins at 0 and never steps.
func (l *leases) now() headgate.Instant { return headgate.Instant(time.Since(l.since)) }

// leaseState gives the configuration of the state machine. Each start may follow another one, whose leases are out. The term is that of
// a server that is alone.
func leaseState(c *config.Lease, resources []state.Resource) state.Config {
	return state.Config{
		Resources: resources, Child: len(c.Servers) > 0, OnLoss: c.OnLoss, Callers: c.Holders,
		Lease: c.Length, Refresh: c.Refresh, Term: uint64(time.Now().UnixMilli()), Restarted: true,
	}
}

// newUplink makes the side to the parent.
func newUplink(i *Instance, c *config.Lease) (*lease.Uplink, error) {
	o := lease.UplinkOptions{Servers: c.Servers, Credentials: insecure.NewCredentials(), Log: i.options.Log}
	if c.UseTLS {
		secured, err := open.Secure("lease.tls", &c.TLS)
		if err != nil {
			return nil, err
		}
		o.Credentials = credentials.NewTLS(secured)
	}
	token := ""
	if c.TokenFile != "" {
		o.Token = func() (string, error) { return parentToken(c.TokenFile) }
		var err error
		if token, err = o.Token(); err != nil {
			return nil, err
		}
	}
	server := instance("/proc", i.options.Config.Server.GRPC.Address)
	if c.Election != nil {
		server = "group " + c.Election.Group // The next master is the same holder.
	}
	o.Holder = lease.HolderOf(token, server)
	return lease.NewUplink(o), nil
}

// parentToken reads the token for the servers of leases.
func parentToken(path string) (string, error) {
	const most = 4096
	token, err := readfile.Line(path, most, "token")
	if err != nil {
		return "", &config.FileError{Path: "lease.token_file", Err: err}
	}
	return token, nil
}

// instance gives a name that no other running process has, and that the process has again after a restart: the boot of the machine,
// the network namespace and the address of the listener, which one process at a time can use. It is empty if there is none, because
// the kernel chooses the port or proc is not mounted.
func instance(proc, address string) string {
	boot, err := readfile.Line(proc+"/sys/kernel/random/boot_id", 100, "id")
	network, fault := os.Readlink(proc + "/self/ns/net")
	if err != nil || fault != nil || strings.HasSuffix(address, ":0") {
		return ""
	}
	return boot + " " + network + " " + address
}

// mark stores marks of a term. Only the master of a group, which has a candidate, has marks.
func (l *leases) mark(term uint64, all []state.Mark) { l.candidate.marks.put(term, all) }

// start opens the stream to the parent, or takes part in elections. It serves the rules of this process.
func (l *leases) start(i *Instance) {
	if l == nil {
		return
	}
	l.limits.start()
	switch {
	case l.candidate != nil:
		l.candidate.start()
	case l.up != nil:
		l.up.Start(l.service)
	}
	if l.own != nil {
		i.serve(func() error { return l.own.Serve(l.held.own) })
	}
}

// drain asks the clients to open streams elsewhere. A master leaves its group first, so that there is one.
func (l *leases) drain() {
	if l != nil {
		l.candidate.end()
		l.service.Drain()
	}
}

// close ends the service after its last client.
func (l *leases) close() {
	if l == nil {
		return
	}
	closeOwn(l.own)
	if l.up != nil {
		l.up.Close()
	}
	l.limits.close()
	l.service.Close()
}

// state gives the counters of the leases.
func (l *leases) state() prom.Leases {
	s := l.service.Stats()
	p := prom.Leases{
		Holders: int64(s.Holders), Resources: int64(s.Resources), Claims: int64(s.Claims), Streams: s.Streams, WaitingBytes: s.WaitingBytes,
		Reports: s.Reports, Answers: s.Leases, Pushes: s.Pushes, Refusals: s.Refusals, Closed: s.Closed,
	}
	if l.up != nil {
		up := l.up.Stats()
		p.Child, p.Opened, p.Sent, p.Dropped = true, up.Opened, up.Sent, up.Dropped
		if l.up.Parent() != "" {
			p.Connected = 1
		}
	}
	p.Totals = l.totals()
	if l.limits != nil {
		p.Limited = true
		p.LimitsConnected, p.LimitsRefused = l.limits.counts()
	}
	if l.candidate != nil {
		e := l.candidate.election.Stats()
		p.Elected, p.Won, p.Lost, p.Failures, p.MarkWrites = true, e.Won, e.Lost, e.Failures, e.Writes
		if s.Master {
			p.Master = 1
		}
	}
	return p
}

// reload puts resources and holders into effect. The other settings need a restart.
func (l *leases) reload(next *config.Config) {
	if l == nil || next.Lease == nil || (l.up == nil) != (len(next.Lease.Servers) == 0) {
		return // lease.servers waits for a restart, and so does what depends on it.
	}
	l.mu.Lock()
	l.file = next.Lease
	l.mu.Unlock()
	l.configure()
}

// configure puts the capacities of the file and of the limits into effect.
func (l *leases) configure() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.service == nil {
		return // The service is not made yet.
	}
	_ = l.service.Configure(l.limits.over(l.file.Resources), l.file.Holders) // Package config has checked the values.
}
