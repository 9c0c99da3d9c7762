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

// Observer is told of every answer. It must not block, and keeps neither req nor a.
type Observer interface {
	Observe(req *headgate.Request, a *Answer)
}

// Config says what a Guard guards.
type Config struct {
	// FairShare divides the capacity of the service among its clients, before the rules
	// are asked; nil does not.
	FairShare *FairShare
	// Rules are looked at in this order. Rules that are Off are not looked at.
	Rules []Rule
	// Store counts for all of them. It may be nil when there are none but those that
	// are Off.
	Store headgate.Store
	// Local counts for the rules with FallbackLocal while Store cannot answer: a store
	// in memory that is not Store. It may be nil when there are no such rules.
	Local headgate.Store
	// LocalShare is this instance's part of each limit in Local, in percent: 1 to 100.
	// It is looked at for rules with FallbackLocal alone; see LocalPolicy.
	LocalShare int
	// Independent lets every rule count on its own. Otherwise the enforced rules
	// that match are all or nothing: a refusal by one takes nothing from the others.
	Independent bool
	// ForwardsGRPC says that requests go on to a service that speaks HTTP/2, so that calls of
	// gRPC's health and reflection are exempt from fair share and from rules of every path.
	// Inside a gRPC server (package grpclimit) they are exempt in any case.
	ForwardsGRPC bool
	// StoreTimeout is the budget of one decision, all rules together and what it has
	// to give back included, and that of giving back what a wait took that is
	// cancelled; 0 is none, which is right for a store in memory, and less than 0 is an
	// error. It bounds the context
	// that the store gets, which no store outlives; Local gets the caller's.
	StoreTimeout time.Duration
	// Namespace is a part of every key in Store and Local: guards with different
	// namespaces share no counters, though their rules have one name. It has up to 64
	// letters, digits, - _ and . in it. "" adds nothing to keys. A Reload with another
	// namespace counts anew.
	Namespace string
	// Stages are entered, in this order, by the requests that fair share and the rules
	// let go, by Admit alone.
	Stages []Stage
	// Observer is told of every answer; nil is nobody.
	Observer Observer
	// Identity says whom to believe about the sender of a request; nil believes nobody.
	Identity *rule.Identity
	// Folds say what of a path the service disregards.
	Folds rule.Folds
	// State is shared by guards that follow each other; nil makes a new one.
	State *State
	// Clock gives the time that fair share goes by, for tests; nil is the machine's.
	// Rules go by the clock of Store.
	Clock func() headgate.Instant
}

// Guard identifies, matches, decides and reports. What it guards with changes by
// Reload alone. It is safe for concurrent use.
type Guard struct {
	current   atomic.Pointer[set]
	store     headgate.Store
	state     *State
	clock     memory.Clock // of fair share
	reloading sync.Mutex   // held while current changes
}

// New prepares the rules' limits in the store, and fair share. The error names the
// rule; it is, or wraps, ErrNoStore when there are rules and no store.
func New(c Config) (*Guard, error) {
	g := &Guard{store: c.Store, state: c.State, clock: memory.NewClock(c.Clock)}
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
	return g, nil
}

// Reload makes c what the guard guards with from the next request on. Counters
// and bans go on for every rule that keeps its name and its key; requests that
// wait keep their departures. Who shares the capacity stays known, with what was used
// of it, for as long as there is fair share; when it is left out, all of that is
// forgotten. c.Store must be the store that the guard has, and c.State and c.Clock are
// not looked at. c.Local may be another than before: what that one counted is then
// forgotten. On an error nothing changes.
//
// The limits of the rules before are released in their stores after the last request
// under them: when every Answer that they filled was dropped or filled again.
func (g *Guard) Reload(c Config) error {
	next, err := g.Prepare(c)
	if err != nil {
		return err
	}
	next.Commit()
	return nil
}

// Prepare does what of a Reload can fail, and changes nothing: Commit of what it returns
// does the rest. It is for programs that reload several things together or none of them.
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

// Prepared is a Config that a Guard has prepared. Either Commit or Discard is called, once;
// of several that are prepared at a time, the one that is committed last stays.
type Prepared struct{ set *set }

// Commit makes the Config what the guard guards with, as Reload does. It cannot fail.
func (p *Prepared) Commit() {
	g, s := p.set.guard, p.set
	g.reloading.Lock()
	defer g.reloading.Unlock()
	g.commit(s)
	g.state.forgetRules(s.config.Rules)
	g.state.bans.followRules(s.config.Rules)
}

// Discard releases the limits that were prepared.
func (p *Prepared) Discard() { release(p.set.claims.all) }

// commit makes s what the guard guards with.
func (g *Guard) commit(s *set) {
	g.reshare(s.share)
	s.claims.releaseWhenDropped()
	g.current.Store(s)
}

// Needs says which facts about a sender the rules and fair share ask for now. A front
// that leaves out what they do not asks with Begin.
func (g *Guard) Needs() rule.Needs {
	if s := g.now(); s != nil {
		return s.needs
	}
	return 0
}

// now gives the rules of this moment; nil for a Guard that New did not make.
func (g *Guard) now() *set {
	if g == nil {
		return nil
	}
	return g.current.Load()
}

// Begin fixes the rules by which the next Decide of a goes, and says which facts
// about a sender they ask for: so a front can leave out what is dear to find, and
// a reload in between does not ask for what it has left out.
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

// Marks lists the headers that tell a service what the guard decided, and those
// that a service may take for them (X_level for X-Level), in canonical spelling: a
// front removes them from what clients send. The caller does not change the list.
func (g *Guard) Marks() []string {
	if s := g.now(); s != nil {
		return s.marks
	}
	return nil
}

// Reads lists the headers and cookies whose values decide what a request counts under.
// The caller does not change the lists.
func (g *Guard) Reads() *rule.Reads {
	if s := g.now(); s != nil {
		return &s.reads
	}
	return new(rule.Reads)
}

// Identity gives whom the guard believes; it may be nil.
func (g *Guard) Identity() *rule.Identity {
	if s := g.now(); s != nil {
		return s.config.Identity
	}
	return nil
}

// Decide fills a with what fair share and the rules say of req: identify, match,
// decide, report. What they need to know of the sender, and the front has not told,
// is derived into req.
//
// Fair share is asked first. What it refuses, the rules are not asked about, unless
// all count on their own (Config.Independent). What it took for a request that the
// rules refuse is given back.
//
// It fails only for a cost that cannot be counted: with a *CostError when the
// request states it, else with headgate.ErrBadCost. A store that cannot answer
// leaves each rule to its fallback; Answer.StoreError says why. After an error the
// answer has no results and the verdict Deny. The error of a Guard that New did not
// make is headgate.ErrNotMade.
//
// After the verdict Wait the caller calls Wait or Cancel.
func (g *Guard) Decide(ctx context.Context, req *headgate.Request, a *Answer) error {
	s, err := g.decide(ctx, req, a)
	if err == nil {
		s.observe(req, a)
	}
	return err
}

// observe reports a decision.
func (s *set) observe(req *headgate.Request, a *Answer) {
	if s.config.Observer != nil {
		s.config.Observer.Observe(req, a)
	}
}

// decide is Decide without the report. It gives the set that decided.
func (g *Guard) decide(ctx context.Context, req *headgate.Request, a *Answer) (*set, error) {
	s := a.begun
	if s == nil || s.guard != g {
		s = g.now()
	}
	if err := g.question(s, req, a); err != nil {
		return nil, err
	}
	g.apply(ctx, s, a)
	g.conclude(ctx, s, req, a)
	return s, nil
}

// question asks fair share, and fills a with what is to be asked of the store.
func (g *Guard) question(s *set, req *headgate.Request, a *Answer) error {
	a.reset()
	a.from = s
	switch {
	case s == nil:
		a.Verdict = headgate.Deny
		return headgate.ErrNotMade
	case req.Cost < 0 || req.Cost > headgate.MaxUnits:
		a.Verdict = headgate.Deny
		return headgate.ErrBadCost
	}
	sent := req.Path
	req.Path = s.config.Folds.Path(sent)
	refused, err := s.decideShare(req, a, Enforce)
	if err == nil && (!refused || s.independent) {
		err = s.addRules(req, a)
	}
	req.Path = sent // What the service gets.
	if err != nil {
		a.unshare()
		g.state.queues.withdraw(a)
		a.reset() // Its results are those of requests before.
		a.Verdict = headgate.Deny
	}
	return err
}

// conclude makes the verdict of what the store has decided.
func (g *Guard) conclude(ctx context.Context, s *set, req *headgate.Request, a *Answer) {
	if a.usual && !a.soft {
		a.judge()
	} else {
		g.settle(ctx, s, req, a)
	}
	if a.Verdict == headgate.Deny {
		a.unshare()
	}
}

// addRules adds what the rules that match ask of the store, and between the enforced
// ones and those in shadow the decision of a fair share in shadow.
func (s *set) addRules(req *headgate.Request, a *Answer) error {
	a.matched = s.exemptProbe(req, s.index.Match(req, a.matched[:0]))
	s.identify(req, a)
	if err := s.addOps(req, a, Enforce); err != nil {
		return err
	}
	// In shadow nothing refuses, a bad cost neither.
	_, _ = s.decideShare(req, a, Shadow)
	_ = s.addOps(req, a, Shadow)
	return nil
}

// identify derives what the matching rules ask for.
func (s *set) identify(req *headgate.Request, a *Answer) {
	if !s.needs.Derived() {
		return
	}
	var needs rule.Needs
	for _, m := range a.matched {
		needs |= s.rules[m].needs
	}
	s.resolve(req, a, needs)
}

// resolve derives facts about the sender, each once: to find that a token is none of
// ours is dear.
func (s *set) resolve(req *headgate.Request, a *Answer, needs rule.Needs) {
	if needs &^= a.resolved; needs.Derived() {
		s.config.Identity.Resolve(req, needs)
		a.resolved |= needs
	}
}

// Observer gives what is told of every answer now; it may be nil.
func (g *Guard) Observer() Observer {
	if s := g.now(); s != nil {
		return s.config.Observer
	}
	return nil
}

// Store gives the store that counts for the guard; nil when it has no rules and was
// given none.
func (g *Guard) Store() headgate.Store {
	if g == nil {
		return nil
	}
	return g.store
}
