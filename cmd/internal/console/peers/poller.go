package peers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/merge"
	"github.com/headgate/headgate/internal/config"
)

const (
	pollEvery = time.Second
	// pollLast is how long a poller goes on after its last reader.
	pollLast = 10 * time.Second
	// atOnce bounds the requests of a round at a time.
	atOnce = 16
	// fresh is how long an answer counts although the next request has failed. stale is how long it counts while none has failed: a round
	// over many peers that do not answer takes several seconds.
	fresh = 2 * time.Second
	stale = 6 * time.Second
	// maxPollers bounds the orders and callers that are served at a time.
	maxPollers = 8
	// listed is the number of rules that each peer lists.
	listed = 200
)

// pollKey is what a poller asks for: the order of the rules, and the caller on whose behalf it asks.
type pollKey struct{ sort, authorization string }

// poller asks all peers for /api/v1/live each second, for all readers with the same key, until pollLast after the last one.
type poller struct {
	key       pollKey
	directory *directory
	config    func() *config.Config

	first chan struct{} // closed after the first round

	mu       sync.Mutex // guards the fields below
	read     time.Time
	states   map[string]*state // by address
	order    []string          // the addresses of the last round
	problems []string
}

// state is what is known about a peer.
type state struct {
	name    string
	version string
	live    *admin.Live // the last one
	seen    time.Time   // of live; zero without
	failed  string      // why the last request failed; "" if it did not
}

func newPoller(key pollKey, d *directory, c func() *config.Config, now time.Time) *poller {
	return &poller{key: key, directory: d, config: c, first: make(chan struct{}), read: now, states: map[string]*state{}}
}

// run polls until no reader is left, or ctx ends.
func (p *poller) run(ctx context.Context) {
	p.round(ctx)
	close(p.first)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !p.idle(time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.round(ctx)
		}
	}
}

func (p *poller) idle(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.read) >= pollLast
}

// round asks each peer once. An answer counts as soon as it is there.
func (p *poller) round(ctx context.Context) {
	peers, problems := p.directory.current(ctx, &p.config().Admin, time.Now())
	p.mu.Lock()
	p.order, p.problems = p.order[:0], problems
	former := p.states
	p.states = make(map[string]*state, len(peers))
	for _, one := range peers {
		p.order = append(p.order, one.address)
		if p.states[one.address] = former[one.address]; former[one.address] == nil {
			p.states[one.address] = &state{failed: "not asked yet"}
		}
	}
	p.mu.Unlock()
	var asking sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, one := range peers {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			p.ask(ctx, one)
		})
	}
	asking.Wait()
}

// ask asks a peer. One of an older version has only a status, whose version is shown.
func (p *poller) ask(ctx context.Context, one *peer) {
	live := new(admin.Live)
	query := url.Values{admin.Local: {"1"}, "limit": {"200"}, "sort": {p.key.sort}}
	name, err := one.get(ctx, "/api/v1/live?"+query.Encode(), p.key.authorization, maxLive, live)
	older := new(statusError)
	version, failed := live.Version, ""
	if err != nil {
		failed = causeOf(err)
	}
	if errors.As(err, &older) && older.code == http.StatusNotFound {
		status := new(admin.Status)
		if name, err = one.get(ctx, "/api/v1/status", p.key.authorization, maxAnswer, status); err == nil {
			version, failed = status.Version, "its version "+status.Version+" has no /api/v1/live: its figures are missing"
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[one.address]
	if s == nil {
		return // It has left the list meanwhile.
	}
	if name != "" {
		s.name = name
	}
	if s.failed = failed; version != "" {
		s.version = version
	}
	if failed == "" {
		s.live, s.seen = bounded(live), time.Now()
		if s.name == "" {
			s.name = live.Instance
		}
	}
}

// bounded keeps a peer from filling the memory: no list is longer than an instance's own.
func bounded(l *admin.Live) *admin.Live {
	l.Rules = l.Rules[:min(len(l.Rules), listed)]
	l.Clients, l.Stores = l.Clients[:min(len(l.Clients), listed)], l.Stores[:min(len(l.Stores), listed)]
	l.Attention, l.Marks = l.Attention[:min(len(l.Attention), listed)], l.Marks[:min(len(l.Marks), listed)]
	l.Instances = nil
	l.Instance = l.Instance[:min(len(l.Instance), maxName)]
	return l
}

// members are the instances, the own one first. An instance that has several addresses, and the own one, count once.
func (p *poller) members(own *admin.Live, address string, now time.Time) (all []merge.Member, problems []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = now
	all = append(all, merge.Member{LiveInstance: about(own, address), Live: own})
	for _, at := range p.order {
		s := p.states[at]
		if s.live != nil && slices.ContainsFunc(all, func(m merge.Member) bool { return same(m.Live, s.live) }) {
			continue
		}
		all = append(all, s.member(at, now))
	}
	distinguish(all)
	return all, slices.Clone(p.problems)
}

// same says that two answers are of one process: instances of one configuration may have one name.
func same(a, b *admin.Live) bool {
	return a != nil && a.Instance == b.Instance && a.Started.Equal(b.Started)
}

func about(l *admin.Live, address string) admin.LiveInstance {
	return admin.LiveInstance{
		Name: l.Instance, Address: address, OK: true, Version: l.Version, Config: l.Config, Started: &l.Started, Seen: &l.Now,
	}
}

func (s *state) member(address string, now time.Time) merge.Member {
	m := merge.Member{LiveInstance: admin.LiveInstance{Name: s.name, Address: address, Version: s.version, Error: s.failed}}
	if s.live == nil {
		return m
	}
	m.LiveInstance, m.Live = about(s.live, address), s.live
	seen := s.seen
	m.Seen = &seen
	if age := now.Sub(s.seen); s.failed != "" && age >= fresh || age >= stale {
		m.OK, m.Error = false, s.failed
	}
	return m
}

// distinguish gives instances with one name different ones.
func distinguish(all []merge.Member) {
	count := map[string]int{}
	for i := range all {
		count[all[i].Name]++
	}
	for i := range all {
		if m := &all[i]; m.Name != "" && count[m.Name] > 1 {
			m.Name += " at " + m.Address
			if m.Live != nil {
				named := *m.Live // Attention and marks get the name that the list has.
				named.Instance = m.Name
				m.Live = &named
			}
		}
	}
}
