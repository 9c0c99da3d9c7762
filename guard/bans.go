package guard

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/sorting"
)

// BanEntry is a current ban of a key that this guard has met.
type BanEntry struct {
	// ID names the entry for Lift, in every instance. It contains the key.
	ID string `json:"id"`
	// Rule is the name of the rule. Key is its key in readable form.
	Rule string `json:"rule"`
	Key  string `json:"key"`
	// Shadow reports that the ban is not enforced.
	Shadow bool `json:"shadow"`
	// Until is when the ban ends, by the store's clock.
	Until time.Time `json:"until"`
	// Operator reports that the key was banned with Guard.Ban, and Reason is the reason. If the rule has a ban of its own, only
	// the instance that banned the key knows both.
	Operator bool   `json:"operator,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// maxBans bounds the remembered bans, at about a kilobyte each. The store also enforces bans
// beyond this bound.
const maxBans = 10_000

// bans has the bans that this process has met.
type bans struct {
	mu   sync.RWMutex
	met  map[uint64]*ban // by the hash of the key; guarded by mu
	more atomic.Uint64
	// swept is the time of the last sweep; guarded by mu.
	swept headgate.Instant
}

// ban is one remembered ban. Only shadow, until and why change.
type ban struct {
	rule, text string
	key        string // without the namespace
	shadow     atomic.Bool
	until      atomic.Int64
	why        atomic.Pointer[operatorReason] // nil for a ban by the rule
}

// noteBans remembers the bans of an answer. A known ban costs one map lookup.
func (g *Guard) noteBans(req *headgate.Request, a *Answer) {
	for i := range a.Results {
		r := &a.Results[i]
		if r.Decision.Reason != headgate.Banned {
			continue
		}
		until, hash := r.Decision.At.Add(r.Decision.RetryAfter), r.KeyHash()
		if g.state.bans.known(hash, until, !r.Enforced()) {
			continue
		}
		met := &ban{rule: strings.Clone(r.Rule.Name), text: r.keyText(req, a), key: strings.Clone(r.ownKey())}
		met.update(until, !r.Enforced())
		if r.window.kind == kindOperatorBan {
			met.why.Store(&operatorReason{until: until}) // The instance that banned the key knows the reason.
		}
		g.state.bans.meet(hash, r.Decision.At, met, false)
	}
}

// update writes only changed fields. Otherwise all cores would write the same words.
func (b *ban) update(until headgate.Instant, shadow bool) {
	if b.until.Load() != int64(until) {
		b.until.Store(int64(until))
	}
	if b.shadow.Load() != shadow {
		b.shadow.Store(shadow)
	}
}

// operatorReason is why an operator has banned a key until a time.
type operatorReason struct {
	text  string
	until headgate.Instant
}

// sameBan is the error of the end of one ban, as the decisions say it. A ban with another end has followed.
const sameBan = time.Second

// describe says why the key is banned.
func (b *ban) describe(entry *BanEntry) {
	if why := b.why.Load(); why != nil && why.until.Sub(headgate.Instant(b.until.Load())).Abs() <= sameBan {
		entry.Operator, entry.Reason = true, why.text
	}
}

// keyText gives the key of a result as text for people.
func (r *Result) keyText(req *headgate.Request, a *Answer) string {
	if r.InTree() {
		return domain.KeyText(a.tree.Name, req.Descriptors, a.shares())
	}
	sent := req.Path
	req.Path = a.from.config.Folds.Path(sent) // As in the key.
	text := r.Rule.KeyText(req)
	req.Path = sent
	return text
}

func (b *bans) known(hash uint64, until headgate.Instant, shadow bool) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	met, found := b.met[hash]
	if found {
		met.update(until, shadow)
	}
	return found
}

// meet remembers a ban. It replaces what another answer has noted meanwhile only for an operator, whose reason is new.
func (b *bans) meet(hash uint64, now headgate.Instant, met *ban, operator bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, noted := b.met[hash]; noted && !operator {
		return
	}
	if len(b.met) >= maxBans && now.Sub(b.swept) >= time.Second {
		b.sweep(now)
	}
	if len(b.met) >= maxBans {
		b.more.Add(1)
		return
	}
	b.met[hash] = met
}

// sweep drops the bans that have ended. The caller holds mu.
func (b *bans) sweep(now headgate.Instant) {
	b.swept = now
	for hash, met := range b.met {
		if met.until.Load() <= int64(now) {
			delete(b.met, hash)
		}
	}
	if len(b.met) < maxBans {
		b.more.Store(0)
	}
}

// followRules drops the bans of rules that no longer ban, and updates which rules are in
// shadow. It reads each ban once.
func (b *bans) followRules(rules []Rule) {
	banning, counting := make(map[string]Mode, len(rules)), make(map[string]Mode, len(rules))
	for i := range rules {
		r := &rules[i]
		if r.Mode != Off {
			counting[r.Name] = r.Mode
		}
		if r.Mode != Off && r.Ban.For > 0 {
			banning[r.Name] = r.Mode
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash, met := range b.met {
		mode, bans := banning[met.rule]
		if met.why.Load() != nil {
			mode, bans = counting[met.rule]
		}
		if !bans {
			delete(b.met, hash)
			continue
		}
		met.shadow.Store(mode == Shadow)
	}
}

// Bans lists the bans that this guard has met and that have not ended at now, by rule and then by
// key. now is a time of the store's clock. The guard remembers 10,000 bans; more reports that it
// has met others since it was last below that bound. A ban in Local is listed until its end,
// although the store does not know it.
func (g *Guard) Bans(now time.Time) (entries []BanEntry, more bool) {
	if g.now() == nil {
		return nil, false
	}
	entries, more = g.state.bans.list(headgate.Instant(now.UnixNano()))
	sorting.Func(entries, func(x, y BanEntry) int {
		return cmp.Or(strings.Compare(x.Rule, y.Rule), strings.Compare(x.Key, y.Key), strings.Compare(x.ID, y.ID))
	})
	return entries, more
}

// list gives the bans unsorted: requests wait for the lock meanwhile.
func (b *bans) list(now headgate.Instant) (entries []BanEntry, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	more = b.more.Load() > 0
	b.sweep(now)
	entries = make([]BanEntry, 0, len(b.met))
	for _, met := range b.met {
		entries = append(entries, BanEntry{
			ID: banID(met.key), Rule: met.rule, Key: met.text, Shadow: met.shadow.Load(),
			Until: headgate.Instant(met.until.Load()).Time(),
		})
		met.describe(&entries[len(entries)-1])
	}
	return entries, more
}

// banID names a ban in every instance: a key, without the namespace of its instance.
func banID(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// KeyOfBan gives the key of a ban with an ID, for rule.KeyNames. It reports false for a malformed ID.
func KeyOfBan(id string) (key string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	return string(text), err == nil
}

// Lift ends the ban with an ID of Bans, also if another instance with the same store and rules has listed it. It
// drops the attempts of the key, in Local too, and keeps the counts of the limits. It reports false if there is no such ban.
func (g *Guard) Lift(ctx context.Context, id string) (lifted bool, err error) {
	s, p, key, lifted, err := g.banOfID(ctx, id)
	if err != nil || !lifted {
		return false, err
	}
	if err := g.endBan(ctx, s, p, key); err != nil {
		return false, err
	}
	return true, nil
}

// Liftable gives the name of the rule of a ban that Lift would end, and ends none. It reports false if there is no such ban.
func (g *Guard) Liftable(ctx context.Context, id string) (ruleName string, found bool, err error) {
	_, p, _, found, err := g.banOfID(ctx, id)
	if p != nil {
		ruleName = p.Name
	}
	return ruleName, found, err
}

// banOfID finds a ban, and what decides on its key. A malformed ID belongs to no ban.
func (g *Guard) banOfID(ctx context.Context, id string) (s *set, p *prepared, key string, found bool, err error) {
	if s = g.now(); s == nil {
		return nil, nil, "", false, headgate.ErrNotMade
	}
	own, ok := KeyOfBan(id)
	if !ok {
		return s, nil, "", false, nil
	}
	if p = s.banning(own); p == nil {
		return s, nil, "", false, nil
	}
	key = string(p.space) + own
	b := &g.state.bans
	b.mu.RLock()
	_, found = b.met[maphash.String(g.state.seed, key)]
	b.mu.RUnlock()
	if !found {
		found, err = p.bans(ctx, g, key)
	}
	return s, p, key, found, err
}

// banning gives the rule or the limit of a tree under which a key can be banned; nil without one.
func (s *set) banning(key string) *prepared {
	for i := range s.rules {
		p := &s.rules[i]
		if p.Mode != Off && (p.Ban.For > 0 || p.operator.watched()) && p.Owns(key) {
			return p
		}
	}
	for _, t := range s.trees {
		for i := range t.leaves {
			if p := &t.leaves[i].counts; p.operator.watched() && strings.HasPrefix(key, string(domain.AppendKey(nil, t.Name, nil, nil))) {
				return p
			}
		}
	}
	return nil
}

// bans asks the store whether a key is banned now.
func (p *prepared) bans(ctx context.Context, g *Guard, key string) (bool, error) {
	id, err := p.banPolicy(g)
	if err != nil {
		return false, err
	}
	_, banned, err := attempt(ctx, g.store, key, id, headgate.Peek, 0)
	if err != nil {
		return false, fmt.Errorf("guard: the ban stays: %w", err)
	}
	return banned, nil
}

// banWindows lists the windows with bans of the rule, each number once: the usual one, and those of a Switch.
func (p *prepared) banWindows() (all []*window) {
	lists := [][]window{p.limits}
	if p.overrides != nil {
		lists = append(lists, p.overrides.windows...)
	}
	add := func(w *window) {
		if w.kind == kindBan && !slices.ContainsFunc(all, func(one *window) bool { return one.number == w.number }) {
			all = append(all, w)
		}
	}
	for _, windows := range lists {
		for i := range windows {
			add(&windows[i])
		}
	}
	if p.part != nil {
		for _, w := range p.part.shadow.banWindows() {
			add(w)
		}
	}
	return all
}

// forgetBan makes a store forget the bans of a key, and the earlier ones that make the next one longer.
func (p *prepared) forgetBan(ctx context.Context, store headgate.Store, key string) error {
	ops := []headgate.Op{{Key: key, Window: banWindow}} // Without a ban of its own, a rule has those of operators.
	for _, w := range p.banWindows() {
		if w.number != banWindow {
			ops = append(ops, headgate.Op{Key: key, Window: w.number})
		}
		if w.growth != nil {
			if err := w.growth.forget(ctx, store, p.growthKey(key)); err != nil {
				return err
			}
		}
	}
	return store.Forget(ctx, ops) //nolint:wrapcheck // because the caller says what failed.
}
