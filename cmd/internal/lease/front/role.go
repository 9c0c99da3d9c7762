package front

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// electionGrace is how long a server that knows no master keeps streams whose reports it does not answer: another master follows
// soon, or this server cannot reach etcd.
const electionGrace = time.Second

// errNoMaster ends the streams of a server that knows no master.
var errNoMaster = status.Error(codes.Unavailable, "this server knows no master of its group: try another server of the group")

// role says who gives the leases of a group.
type role struct {
	server *state.Server // nil if this server is not the master
	term   uint64
	until  headgate.Instant // the end of this server's time as the master
	master string           // the address of another master, or ""
	since  headgate.Instant // the time since which no master is known
}

// Lead says that this server is the master until a time, which a later call may move. A new term begins with an empty state: the
// leases of earlier masters are unknown. The same term goes on, also after its end. It needs Options.Elected.
// marks are those of the earlier master; with nil, there may be leases up to the capacity of each resource.
func (s *Service) Lead(term uint64, until headgate.Instant, marks map[string]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if s.role.server == nil || s.role.term != term {
		config := s.options.State
		config.Term, config.Marked, config.Marks = term, s.options.Marks != nil, marks
		server, err := state.New(config, now)
		if err != nil {
			return err
		}
		s.out.Reset()
		s.role = role{server: server, term: term}
	}
	s.role.until, s.role.since = until, until
	s.dispatch(now)
	return nil
}

// Stored says that marks of a term are stored.
func (s *Service) Stored(term uint64, marks []state.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.options.Now(); s.role.server != nil && s.role.term == term {
		s.role.server.Stored(now, marks)
		s.dispatch(now)
	}
}

// HasTerm reports whether this server has the leases of a term, as the master or since a late renewal.
func (s *Service) HasTerm(term uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.role.server != nil && s.role.term == term
}

// Follow says that this server is not the master. master is the address of the one that is, or "". Clients are sent there.
func (s *Service) Follow(master string) {
	s.mu.Lock()
	s.stepDown(s.options.Now(), master)
	s.mu.Unlock()
	if master == "" {
		return
	}
	for _, x := range s.all() {
		x.redirect(master)
	}
}

// stepDown forgets all leases. What has been sent before stays valid, and the next master counts it. The caller holds mu.
func (s *Service) stepDown(now headgate.Instant, master string) {
	s.role = role{master: master, since: now}
	s.out.Reset()
}

// leads reports whether this server may give leases at now. After the end of its time as the master it may not. An answer that
// was decided earlier and is sent later does no harm: its holder counts the end from a report that came before the next master
// was elected, and the next master counts the leases of this one until the longest of them has ended. The caller holds mu.
//
// The leases stay until Follow or the next term: a renewal may be late, because the process was paused, and the key has not
// expired meanwhile. A new state of the same term would not know them, and its versions would be older than theirs.
func (s *Service) leads(now headgate.Instant) bool {
	return s.role.server != nil && (!s.options.Elected || now < s.role.until)
}

// away reports whether another server gives the leases: at the address of the master, or at an unknown one. late says that it has
// been unknown for a while.
func (s *Service) away() (master string, late, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if s.leads(now) {
		return "", false, false
	}
	return s.role.master, s.role.master == "" && now.Sub(s.role.since) > electionGrace, true
}

// Master reports whether this server gives leases, and the address of another master if one is known.
func (s *Service) Master() (mine bool, other string) {
	master, _, away := s.away()
	return !away, master
}

// redirected is a response that sends the client to the master.
func redirected(holder, master string) []byte {
	return wire.AppendText(wire.AppendText(nil, 1, holder), 4, master)
}

// redirect sends the client of a stream to the master, and ends the stream.
func (x *stream) redirect(master string) {
	x.mu.Lock()
	x.moved = master
	x.mu.Unlock()
	x.flush()
}

// settle sends a new stream to the master, if another server is the master.
func (x *stream) settle() {
	if master, _, away := x.service.away(); away && master != "" {
		x.redirect(master)
	}
}
