package guard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// Observer gets every answer. Observe must not block, and must not keep req or a.
type Observer interface {
	Observe(req *headgate.Request, a *Answer)
}

// Config is the configuration of a Guard.
type Config struct {
	// FairShare divides the capacity of the service among its clients, before the rules decide.
	// nil means no fair share.
	FairShare *FairShare
	// Exempt are requests that nothing decides: neither fair share, nor Rules, nor Stages. They are not counted and not observed. They
	// are no exception for the trees of Domains. At most rule.MaxExempt entries.
	Exempt []rule.Match
	// Rules are matched in this order. Rules that are Off are skipped.
	Rules []Rule
	// Quotas are the plans and customers of the rules with a quota; nil without such rules.
	Quotas *Quotas
	// Domains are the trees of limits of a decision server; see DecideDescriptors. New and Reload
	// keep references to them.
	Domains []Domain
	// DomainsMode applies to all limits of Domains, as far as it weakens their own mode. Off makes them unlimited.
	DomainsMode Mode
	// MaxSentLimits bounds the different limits that clients send to one domain: the least
	// recently used one leaves. 0 is DefaultMaxSentLimits.
	MaxSentLimits int
	// RefusalsMemory is the memory, in bytes, for counters of fixed windows of Domains that are above
	// their limits. A request to such a counter is refused without a query to Store, and its cost
	// is not counted. Units that another Guard gives back are noticed when the window ends. 0
	// remembers nothing, a negative value is an error, and a positive value has room for one
	// counter for each 35 bytes. A Reload with another value starts with an empty memory.
	RefusalsMemory int64
	// WithoutState says that there are rules that are not known yet, for example because their source does not answer. Every
	// request is refused with the reason SourceUnavailable, or PlanMissing if an enforced rule matches whose plan is Missing,
	// and nothing is counted. Exempt are calls of gRPC's health and reflection. Domains decide as always.
	WithoutState bool
	// Store counts for all rules. It may be nil when no rule is on.
	Store headgate.Store
	// Local counts for the rules with FallbackLocal while Store does not answer. It is a store in
	// memory, and not Store itself. It may be nil when there are no such rules.
	Local headgate.Store
	// LocalShare is this instance's part of each limit in Local, in percent: 1 to 100. Only rules
	// with FallbackLocal use it; see LocalPolicy.
	LocalShare int
	// Leases has the leases of this process, for rules with a Lease; nil without such rules. Guards may share it, and a
	// Reload must keep it. The guard does not close it.
	Leases *LeaseTable
	// LeaseTimeout bounds how long a request waits for the first lease of a resource. 0 means no wait: the fallback
	// decides until the lease is there. If Store has a part in the decision, the wait takes at most half of StoreTimeout, from
	// the store's budget.
	LeaseTimeout time.Duration
	// Independent lets every rule count on its own. Otherwise the matching enforced rules are all
	// or nothing: a refusal by one rule takes nothing from the others.
	Independent bool
	// ForwardsGRPC says that requests go to a service that speaks HTTP/2. Calls of gRPC's health
	// and reflection are then exempt from fair share, and from rules for every path. Inside a
	// gRPC server (package grpclimit) they are always exempt.
	ForwardsGRPC bool
	// StoreTimeout is the store's budget for one decision: for all rules together, and for the
	// return of units. The return of a cancelled wait has its own budget. 0 means no budget,
	// which is right for a store in memory; a negative value is an error. StoreTimeout bounds
	// the context that the store gets. Local gets the caller's context.
	StoreTimeout time.Duration
	// Namespace is a part of every key in Store and Local. Guards with different namespaces share
	// no counters, also for rules with one name. A namespace has up to 64 letters, digits, and
	// the signs - _ and . in it. "" adds nothing to keys. A Reload with another namespace starts
	// with empty counters.
	Namespace string
	// Decider decides in place of FairShare and Rules, which are then empty; nil means that these decide.
	Decider Decider
	// Meter counts what the rules with a quota decide; nil counts nothing. See meter.Meter.
	Meter headgate.Meter
	// Stages are entered in this order, by requests that fair share and the rules allow. Only
	// Admit enters stages.
	Stages []Stage
	// Observer gets every answer; nil means no observer.
	Observer Observer
	// Identity sets which sources about the sender of a request are trusted; nil trusts none.
	Identity *rule.Identity
	// Logged are parts of keys that a log shows. Their facts about a sender are known for each request, also without a rule that reads
	// them.
	Logged []rule.Part
	// Folds are the differences between paths that the service ignores.
	Folds rule.Folds
	// State is shared by consecutive guards; nil makes a new one.
	State *State
	// RetryAfterMax bounds the time until a retry that fronts state over HTTP and gRPC; 0 is DefaultRetryAfterMax, and
	// MostRetryAfter is the most. Decisions, texts and the rate limit fields keep the exact time.
	RetryAfterMax time.Duration
	// XShouldRetry says that fronts add X-Should-Retry: false to a refusal that lasts more than a minute.
	XShouldRetry bool
	// Clock is the clock of fair share and of the edges of calendar windows, for tests; nil is the
	// machine's clock. Rules use the clock of Store.
	Clock func() headgate.Instant
}

// Guard identifies, matches, decides and reports. Its configuration changes only by Reload. A
// Guard is safe for concurrent use.
type Guard struct {
	current atomic.Pointer[set]
	store   headgate.Store
	state   *State
	clock   memory.Clock // of fair share and of edges
	// followsMachine: edges are those of the machine's time. See calendarNow.
	followsMachine bool
	reloading      sync.Mutex // held while current or fronts change
	fronts         []Front    // those that are attached
	operator       atomic.Pointer[operatorLimits]
}

// New prepares the rules' limits in the store, and fair share. The error names the rule. It is, or
// wraps, ErrNoStore when there are rules and no store.
func New(c Config) (*Guard, error) {
	_, inMemory := c.Store.(*memory.Store)
	g := &Guard{store: c.Store, state: c.State, clock: memory.NewClock(c.Clock), followsMachine: c.Clock == nil && !inMemory}
	switch {
	case g.state == nil:
		g.state = NewState()
	case g.state.queues == nil:
		return nil, errors.New("guard: Config.State is a zero State: make one with NewState, or leave it out")
	}
	s, err := g.prepareSet(c)
	if err != nil {
		return nil, err
	}
	g.commit(s)
	applyStages(nil, s.config.Stages)
	return g, nil
}

// Reload applies c from the next request on. Every rule that keeps its name and its key keeps its
// counters and bans. Waiting requests keep their departures. Clients and used units of fair share
// are kept while fair share exists, and dropped when it is left out. After an error, nothing
// has changed.
//
// c.Store must be the guard's store. c.State and c.Clock are ignored. c.Local may be another
// store; the counts of the former one are then dropped.
//
// The former limits are released in their stores after the last request under them: when every
// Answer that they filled was dropped or filled again.
func (g *Guard) Reload(c Config) error {
	next, err := g.Prepare(c)
	if err != nil {
		return err
	}
	next.Commit()
	return nil
}

// Prepare runs the part of Reload that can fail, and changes nothing. Commit of its result does the
// rest. Prepare serves programs that reload several things together.
func (g *Guard) Prepare(c Config) (*Prepared, error) {
	if g.now() == nil {
		return nil, headgate.ErrNotMade
	}
	if c.Store != g.store {
		return nil, errors.New("guard: a reload cannot change the store: make a new guard")
	}
	g.reloading.Lock()
	defer g.reloading.Unlock()
	s, err := g.prepareSet(c)
	if err != nil {
		return nil, err
	}
	return &Prepared{s}, nil
}

// Prepared is a Config that a Guard has prepared. Call either Commit or Discard, once. Of several
// Prepared at a time, the last committed one stays.
type Prepared struct{ set *set }

// Commit applies the Config, as Reload does. Commit cannot fail.
func (p *Prepared) Commit() {
	former := p.replace()
	applyStages(former.config.Stages, p.set.config.Stages) // Without the lock: stages may resume requests.
}

// replace makes the set the current one, and returns the former one.
func (p *Prepared) replace() *set {
	g, s := p.set.guard, p.set
	g.reloading.Lock()
	defer g.reloading.Unlock()
	former := g.now()
	g.commit(s)
	former.releaseLeases(s)
	g.state.forgetRules(s.config.Rules)
	g.state.bans.followRules(s.config.Rules)
	return former
}

// Discard releases the limits that were prepared.
func (p *Prepared) Discard() { p.set.claims.releaseNow() }

// commit applies s from the next request on.
func (g *Guard) commit(s *set) {
	g.reshare(s.share)
	s.claims.releaseWhenDropped()
	s.refusals = g.state.refusalsOf(s.config.RefusalsMemory)
	g.current.Store(s)
}

// Needs gives the facts about a sender that the current rules and fair share read. A front that
// leaves out other facts calls Begin instead.
func (g *Guard) Needs() rule.Needs {
	if s := g.now(); s != nil {
		return s.needs
	}
	return 0
}

// now gives the current set; nil for a Guard that New did not make.
func (g *Guard) now() *set {
	if g == nil {
		return nil
	}
	return g.current.Load()
}

// Begin fixes the rules for the next Decide of a, and gives the facts about a sender that they
// read. A front can leave out other facts, which may be expensive. A reload in between has no
// effect on that Decide.
func (g *Guard) Begin(a *Answer) rule.Needs {
	if a.begun = g.now(); a.begun == nil {
		return 0
	}
	return a.begun.needs
}

// Reads is Guard.Reads of the rules that Begin fixed, until the next Decide.
func (a *Answer) Reads() *rule.Reads {
	if a.begun == nil {
		return new(rule.Reads)
	}
	return &a.begun.reads
}

// Marks lists the headers that tell a service about decisions, the private fields of stages, and the
// names that a service may take for them (X_level for X-Level), in canonical spelling. A front removes such headers of clients.
// The caller must not change the list.
func (g *Guard) Marks() []string {
	if s := g.now(); s != nil {
		return s.marks
	}
	return nil
}

// Reads lists the headers and cookies that decide what a request counts under. The caller must not
// change the lists.
func (g *Guard) Reads() *rule.Reads {
	if s := g.now(); s != nil {
		return &s.reads
	}
	return new(rule.Reads)
}

// Identity gives the sources about senders that the guard trusts; it may be nil.
func (g *Guard) Identity() *rule.Identity {
	if s := g.now(); s != nil {
		return s.config.Identity
	}
	return nil
}

// addResults adds what fair share and the rules say.
func (s *set) addResults(req *headgate.Request, a *Answer) error {
	if s.config.WithoutState {
		s.refuseWithoutState(req, a)
		return nil
	}
	refused, err := s.decideShare(req, a, Enforce)
	if err != nil || refused && !s.independent {
		return err
	}
	return s.addRules(req, a)
}

// conclude sets the verdict from the store's decisions.
func (g *Guard) conclude(ctx context.Context, s *set, req *headgate.Request, a *Answer) {
	if a.watching {
		a.dropUnbanned()
	}
	switch {
	case !req.Peek:
	case a.explains() != nil:
		a.explainWaits(req.NoWait)
	default:
		a.refuseWaits()
	}
	if a.usual && !a.soft {
		a.judge()
	} else {
		g.settle(ctx, s, req, a)
	}
	if a.Verdict == headgate.Deny {
		a.unshare()
		if !s.independent {
			a.unlease(false)
		}
	}
	if s.config.Meter != nil && s.quotas != nil {
		s.meter(a)
	}
}

// addRules adds the Ops of the matching rules. The decision of a fair share in shadow stands
// between the enforced rules and those in shadow.
func (s *set) addRules(req *headgate.Request, a *Answer) error {
	a.matched = s.match(req, a, a.matched[:0])
	if req.Permitted != nil {
		if err := s.permit(req, a.matched); err != nil {
			return err
		}
	}
	s.identify(req, a, a.matched)
	if err := s.addOps(req, a, Enforce); err != nil {
		return err
	}
	if a.lacking && !s.independent {
		a.peekEnforced()
	}
	// In shadow, a bad cost refuses nothing either.
	_, _ = s.decideShare(req, a, Shadow)
	_ = s.addOps(req, a, Shadow)
	return nil
}

// identify derives the facts that the matching rules need.
func (s *set) identify(req *headgate.Request, a *Answer, matched []int) {
	if !s.needs.Derived() {
		return
	}
	var needs rule.Needs
	for _, m := range matched {
		needs |= s.rules[m].needs
	}
	s.resolve(req, a, needs)
}

// resolve derives facts about the sender, each once: it is expensive to find that a token is
// invalid.
func (s *set) resolve(req *headgate.Request, a *Answer, needs rule.Needs) {
	if needs &^= a.resolved; needs.Derived() {
		s.config.Identity.Resolve(req, needs)
		a.resolved |= needs
	}
}

// Observer gives the current Observer; it may be nil.
func (g *Guard) Observer() Observer {
	if s := g.now(); s != nil {
		return s.config.Observer
	}
	return nil
}

// Store gives the guard's store; nil for a guard made without one.
func (g *Guard) Store() headgate.Store {
	if g == nil {
		return nil
	}
	return g.store
}
