package lease

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/lease/front"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/readfile"
)

// Granted gives capacity leases on the gRPC listener. Its methods do nothing for nil.
type Granted struct {
	service   *front.Service
	up        *front.Uplink // nil for a root
	rules     *Rules
	own       *rpc.Server // gives leases to held; nil without it
	candidate *candidate  // nil for a server that is alone
	since     time.Time   // The beginning of the clock of service.
	log       *slog.Logger
	limits    *limitsInForce // nil without lease.limits

	mu   sync.Mutex
	file *config.Lease // has the resources and holders in effect
}

// newGranted makes the service of the section lease. It is nil without the section.
func newGranted(log *slog.Logger, all *config.Config, rules *Rules) (*Granted, error) {
	c := all.Lease
	if c == nil || all.Server.GRPC.Address == "" {
		return nil, nil //nolint:nilnil // The section is optional, and rules may use it alone.
	}
	l := &Granted{rules: rules, since: time.Now(), log: log, file: c}
	var err error
	if l.limits, err = newLimits(log, c, l.configure); err != nil {
		return nil, err
	}
	o := front.Options{
		State: leaseState(c, l.limits.over(c.Resources)), Now: l.now,
		MaxAge: all.Server.GRPC.MaxConnectionAge, Elected: c.Election != nil,
	}
	if len(c.Servers) > 0 {
		up, err := newUplink(log, all)
		if err != nil {
			return nil, err
		}
		l.up, o.Up = up, up.Up
	}
	if o.Elected && len(c.Servers) == 0 {
		o.Marks = l.mark
	}
	service, err := front.New(o)
	if err != nil {
		return nil, err
	}
	l.service, l.own = service, rules.serve(service)
	l.candidate, err = newCandidate(all, l)
	return l, err
}

// now is a clock that begins at 0 and never steps.
func (l *Granted) now() headgate.Instant { return headgate.Instant(time.Since(l.since)) }

// leaseState gives the configuration of the state machine. Each start may follow another one, whose leases are out. The term is that of
// a server that is alone.
func leaseState(c *config.Lease, resources []state.Resource) state.Config {
	return state.Config{
		Resources: resources, Child: len(c.Servers) > 0, OnLoss: c.OnLoss, Callers: c.Holders,
		Lease: c.Length, Refresh: c.Refresh, Term: uint64(time.Now().UnixMilli()), Restarted: true,
	}
}

// newUplink makes the side to the parent.
func newUplink(log *slog.Logger, all *config.Config) (*front.Uplink, error) {
	c := all.Lease
	o := front.UplinkOptions{Servers: c.Servers, Credentials: insecure.NewCredentials(), Log: log}
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
	server := instance("/proc", all.Server.GRPC.Address)
	if c.Election != nil {
		server = "group " + c.Election.Group // The next master is the same holder.
	}
	o.Holder = front.HolderOf(token, server)
	return front.NewUplink(o), nil
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
func (l *Granted) mark(term uint64, all []state.Mark) { l.candidate.marks.put(term, all) }

// Register adds the service to the gRPC listener.
func (l *Granted) Register(to grpc.ServiceRegistrar) { l.service.Register(to) }

// Start opens the stream to the parent, or takes part in elections. It serves the rules of this process.
func (l *Granted) Start(host *component.Host) {
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
		host.Serve(func() error { return l.own.Serve(l.rules.own) })
	}
}

// Drain asks the clients to open streams elsewhere. A master leaves its group first, so that there is one.
func (l *Granted) Drain() {
	if l != nil {
		l.candidate.end()
		l.service.Drain()
	}
}

// Close ends the service after its last client.
func (l *Granted) Close() {
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
func (l *Granted) state() prom.Leases {
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

// Reload puts resources and holders into effect. The other settings need a restart.
func (l *Granted) Reload(next *config.Config) {
	if l == nil || next.Lease == nil || (l.up == nil) != (len(next.Lease.Servers) == 0) {
		return // lease.servers waits for a restart, and so does what depends on it.
	}
	l.mu.Lock()
	l.file = next.Lease
	l.mu.Unlock()
	l.configure()
}

// configure puts the capacities of the file and of the limits into effect.
func (l *Granted) configure() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.service == nil {
		return // The service is not made yet.
	}
	_ = l.service.Configure(l.limits.over(l.file.Resources), l.file.Holders) // Package config has checked the values.
}
