package guard

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// operatorBans are the bans by an operator under a rule without a ban of its own, or under a limit of a tree. The store has
// them as bans of the key. Requests look for them only while there are some: see watch. They then also find a ban that was in force
// when the rule lost its own.
type operatorBans struct {
	watch  *watch
	policy string // the name that callers see
}

// watch says until when the keys of one rule, or of one domain, are looked up in the store with each decision. An instance that
// bans a key sets it at once. The others learn it from a ban of the marker, a key without values: see FollowBans.
type watch struct {
	marker string       // the key, without the namespace
	until  atomic.Int64 // a time of the store's clock; 0 while no ban is known
	_      [40]byte     // Decisions read until, and nothing else in its cache line changes.
}

// Marks of markers. Keys of rules and domains begin with 0 to 0x80 or 0xFE, and those of customers with 0xF0.
const (
	markerOfAll    = "\xf1"
	markerOfRule   = "\xf1r"
	markerOfDomain = "\xf1d"
)

// Bounds of a ban by an operator.
const (
	leastOperatorBan = time.Second
	// banPeriod is the period in which the first attempt bans. Attempts from before it have no effect on the end of the ban.
	banPeriod = limit.MinPer
	// markedLonger is the time by which a marker is banned longer: it is banned before the key, and the calls take time.
	markedLonger = time.Minute
)

// watchOf gives the watch of a marker. Watches outlive reloads.
func (s *State) watchOf(marker string) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, known := s.watches[marker]
	if !known {
		w = &watch{marker: marker}
		s.watches[marker] = w
	}
	return w
}

// watched reports whether the keys are looked up. It is false for nil.
func (o *operatorBans) watched() bool { return o != nil && o.watch.until.Load() != 0 }

// extend makes the watch last until a time at least.
func (w *watch) extend(until headgate.Instant) {
	for {
		was := w.until.Load()
		if was >= int64(until) || w.until.CompareAndSwap(was, int64(until)) {
			return
		}
	}
}

// end ends a watch whose time is over at now.
func (w *watch) end(now headgate.Instant) {
	if was := w.until.Load(); was != 0 && was <= int64(now) {
		w.until.CompareAndSwap(was, 0)
	}
}

// addOperatorBans lets a rule look for bans, unless its own ban sees them. It does not see those of keys with an Unlimited override.
func (g *Guard) addOperatorBans(p *prepared, marker string) {
	unlimited := slices.ContainsFunc(p.Overrides, func(o Override) bool { return o.Unlimited })
	if g.store != nil && (p.Ban.For == 0 || unlimited) {
		p.operator = &operatorBans{watch: g.state.watchOf(marker), policy: p.Name + "-ban"}
	}
}

// operatorLimits see the bans of keys. They are prepared when they are first needed, and released with the guard.
type operatorLimits struct {
	window // never bans by itself

	// written is taken where nothing else is written, so that a store that cannot write does not look healthy.
	written headgate.PolicyID
}

// operatorLimits gives the limits that see the bans of keys.
func (g *Guard) operatorLimits() (*operatorLimits, error) {
	if w := g.operator.Load(); w != nil {
		return w, nil
	}
	const most = 1 << 20
	policy := headgate.Policy{
		Algorithm: headgate.Ban, Limit: headgate.Limit{Count: headgate.MaxUnits, Per: banPeriod}, BanFor: banPeriod,
	}
	id, err := g.store.Prepare(policy)
	if err != nil {
		return nil, fmt.Errorf("guard: bans cannot be read: %w", err)
	}
	written, err := g.store.Prepare(headgate.Policy{Limit: headgate.Limit{Count: most, Per: time.Second}})
	if err != nil {
		g.store.Release(id)
		return nil, fmt.Errorf("guard: bans cannot be read: %w", err)
	}
	w, claimed := &operatorLimits{written: written}, []claim{{g.store, id}, {g.store, written}}
	w.window = window{
		id: id, number: banWindow, kind: kindOperatorBan, mode: headgate.Peek, algorithm: headgate.Ban,
		limit: headgate.Limit{Per: time.Second}, // A banned key has no units.
	}
	if !g.operator.CompareAndSwap(nil, w) {
		release(claimed)
		return g.operator.Load(), nil
	}
	runtime.AddCleanup(w, release, claimed)
	return w, nil
}

// addOperatorBan looks for a ban of the key, if there may be one.
func (a *Answer) addOperatorBan(p *prepared, req *headgate.Request, key string) (r *Result, added bool) {
	if !p.operator.watched() || req.Kind == headgate.Refund {
		return nil, false
	}
	w, err := a.from.guard.operatorLimits()
	if err != nil {
		return nil, false // The guard that has banned the key had a policy, so the store has no room for the one of this guard.
	}
	r = a.nextResult()
	a.describe(r, p, &w.window, key, req)
	r.Policy, r.cost, r.mode = p.operator.policy, 0, headgate.Peek
	a.watching = true
	return r, true
}

// dropUnbanned drops the results of keys that no operator has banned, so that nothing shows that they were looked up.
func (a *Answer) dropUnbanned() {
	kept := a.Results[:0]
	for i := range a.Results {
		r := &a.Results[i]
		if r.window != nil && r.window.kind == kindOperatorBan {
			if r.Decision.Reason != headgate.Banned {
				r.from.operator.watch.end(r.Decision.At)
				continue
			}
			r.Limit, r.Decision.Limit = r.window.limit, 0
		}
		kept = append(kept, *r)
	}
	clear(a.Results[len(kept):])
	a.Results = kept
}

// Ban refuses a key from now on, for d of at least a second, in every instance with the same store. A later Ban of the key
// replaces the end and the reason. The counts of the key stay. Ban returns the ban as Bans lists it in this instance.
//
// The store keeps the ban. Other instances refuse the key at once if its rule has a ban of its own, and otherwise after their next
// FollowBans. Only this instance knows the reason. While the store does not answer, the fallback of the rule decides. Rules that degrade
// without a hard limit and have a ban of their own let banned keys pass with their mark, and rules in shadow refuse nothing.
//
// After an error, the key may be banned or not.
func (g *Guard) Ban(ctx context.Context, name KeyName, d time.Duration, reason string) (*BanEntry, error) {
	d = d.Round(time.Second) // Each length is a policy of the store until its bans end.
	if d < leastOperatorBan || d > limit.MaxPer {
		return nil, &KeyNameError{Problem: fmt.Sprintf("a ban of %v is out of range", d), Fix: "use 1s to 367d"}
	}
	k, err := g.named(&name)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(k.set)
	policy := headgate.Policy{
		Algorithm: headgate.Ban, Limit: headgate.Limit{Per: banPeriod}, BanFor: d - banPeriod, Named: true,
	}
	end, err := k.ban(ctx, g.store, policy)
	if err != nil {
		return nil, fmt.Errorf("guard: the key was not banned: %w", err)
	}
	met := &ban{rule: k.from.Name, text: k.text, key: strings.Clone(k.own)}
	met.why.Store(&operatorReason{reason, end})
	met.update(end, k.from.Mode == Shadow)
	g.state.bans.meet(maphash.String(g.state.seed, k.key), end.Add(-d), met, true)
	entry := &BanEntry{ID: banID(k.own), Rule: met.rule, Key: met.text, Shadow: met.shadow.Load(), Until: end.Time()}
	met.describe(entry)
	return entry, nil
}

// ban bans the key, and gives the end. The markers come first: no instance may miss the ban.
func (k *namedKey) ban(ctx context.Context, store headgate.Store, policy headgate.Policy) (end headgate.Instant, err error) {
	id, err := store.Prepare(policy)
	if err != nil {
		return 0, err //nolint:wrapcheck // because Ban says what failed.
	}
	defer store.Release(id)
	if o := k.from.operator; o != nil {
		if err := k.mark(ctx, store, o.watch, policy); err != nil {
			return 0, err
		}
	}
	if _, banned, err := attempt(ctx, store, k.key, id, headgate.Peek, 0); err != nil {
		return 0, err
	} else if banned {
		if err := store.Forget(ctx, []headgate.Op{{Key: k.key, Window: banWindow}}); err != nil {
			return 0, err //nolint:wrapcheck // because Ban says what failed.
		}
	}
	end, _, err = attempt(ctx, store, k.key, id, headgate.Take, 1)
	return end, err
}

// mark bans the markers for longer than the key.
func (k *namedKey) mark(ctx context.Context, store headgate.Store, w *watch, policy headgate.Policy) error {
	policy.BanFor = min(policy.BanFor+markedLonger, limit.MaxPer)
	id, err := store.Prepare(policy)
	if err != nil {
		return err //nolint:wrapcheck // because Ban says what failed.
	}
	defer store.Release(id)
	for _, marker := range [...]string{markerOfAll, w.marker} {
		end, err := atLeast(ctx, store, string(k.from.space)+marker, id, policy.BanFor)
		if err != nil {
			return err
		}
		w.extend(end)
	}
	return nil
}

// attempt makes an attempt of a ban, and gives the end of the ban in force.
func attempt(ctx context.Context, store headgate.Store, key string, id headgate.PolicyID, kind headgate.OpKind, cost int64,
) (end headgate.Instant, banned bool, err error) {
	d, err := applyOne(ctx, store, headgate.Op{Key: key, Policy: id, Window: banWindow, Kind: kind, Cost: cost})
	return d.At.Add(d.RetryAfter), d.Reason == headgate.Banned && err == nil, err
}

// errContended says that other operators ban keys at the same moment.
var errContended = errors.New("other bans of the rule were made at the same time: repeat the ban")

// atLeast bans a marker for a time at least. A shorter ban must end first, and another operator may ban in between.
func atLeast(ctx context.Context, store headgate.Store, key string, id headgate.PolicyID, d time.Duration) (headgate.Instant, error) {
	const attempts = 16
	for range attempts {
		var decided [1]headgate.Decision
		op := headgate.Op{Key: key, Policy: id, Window: banWindow, Cost: 1}
		if err := store.Apply(ctx, []headgate.Op{op}, decided[:]); err != nil {
			return 0, err //nolint:wrapcheck // because Ban says what failed.
		}
		if decided[0].Reason == headgate.Banned && decided[0].RetryAfter >= d {
			return decided[0].At.Add(decided[0].RetryAfter), nil
		}
		if err := store.Forget(ctx, []headgate.Op{{Key: key, Window: banWindow}}); err != nil {
			return 0, err //nolint:wrapcheck // because Ban says what failed.
		}
	}
	return 0, errContended
}

// Unban ends the ban of a key, by an operator or by its rule, and drops the attempts that led to it. It keeps the counts of the
// limits. It reports whether the key was banned. Other instances may repeat a refusal for up to a second.
func (g *Guard) Unban(ctx context.Context, name KeyName) (banned bool, err error) {
	k, err := g.named(&name)
	if err != nil {
		return false, err
	}
	defer runtime.KeepAlive(k.set)
	if banned, err = k.from.bans(ctx, g, k.key); err != nil {
		return false, err
	}
	return banned, g.endBan(ctx, k.set, k.from, k.key)
}

// endBan ends the ban of a key of a store.
func (g *Guard) endBan(ctx context.Context, s *set, p *prepared, key string) error {
	for _, store := range [...]headgate.Store{s.config.Local, g.store} {
		if store == nil {
			continue
		}
		if err := p.forgetBan(ctx, store, key); err != nil {
			return fmt.Errorf("guard: the ban stays: %w", err)
		}
	}
	b := &g.state.bans
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.met, maphash.String(g.state.seed, key))
	return nil
}
