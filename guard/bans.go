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

// ban is one remembered ban. Only until and shadow change.
type ban struct {
	rule, text string
	key        string // without the namespace
	shadow     atomic.Bool
	until      atomic.Int64
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
		met := &ban{rule: strings.Clone(r.Rule.Name), text: r.Rule.KeyText(req), key: strings.Clone(r.ownKey())}
		met.update(until, !r.Enforced())
		g.state.bans.meet(hash, r.Decision.At, met)
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

func (b *bans) known(hash uint64, until headgate.Instant, shadow bool) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	met, found := b.met[hash]
	if found {
		met.update(until, shadow)
	}
	return found
}

func (b *bans) meet(hash uint64, now headgate.Instant, met *ban) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	banning := make(map[string]Mode, len(rules))
	for i := range rules {
		if r := &rules[i]; r.Mode != Off && r.Ban.For > 0 {
			banning[r.Name] = r.Mode
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash, met := range b.met {
		mode, bans := banning[met.rule]
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
	slices.SortFunc(entries, func(x, y BanEntry) int {
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
	s := g.now()
	if s == nil {
		return false, headgate.ErrNotMade
	}
	own, ok := KeyOfBan(id)
	if !ok {
		return false, nil // A malformed ID belongs to no ban.
	}
	p := s.banning(own)
	if p == nil {
		return false, nil
	}
	key := string(p.space) + own
	hash := maphash.String(g.state.seed, key)
	b := &g.state.bans
	b.mu.RLock()
	_, lifted = b.met[hash]
	b.mu.RUnlock()
	if !lifted {
		if lifted, err = p.bans(ctx, g.store, key); err != nil || !lifted {
			return false, err
		}
	}
	stores := [...]headgate.Store{s.config.Local, g.store}
	for _, store := range stores {
		if store == nil {
			continue
		}
		if err := store.Forget(ctx, []headgate.Op{{Key: key, Window: banWindow}}); err != nil {
			return false, fmt.Errorf("guard: the ban stays: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.met, hash)
	return true, nil
}

// banning gives the rule with a ban that has a key; nil without one.
func (s *set) banning(key string) *prepared {
	for i := range s.rules {
		p := &s.rules[i]
		if p.Mode != Off && p.Ban.For > 0 && p.Owns(key) {
			return p
		}
	}
	return nil
}

// bans asks the store whether a key is banned now.
func (p *prepared) bans(ctx context.Context, store headgate.Store, key string) (bool, error) {
	for _, windows := range slices.Concat([][]window{p.limits}, p.special) {
		for i := range windows {
			w := &windows[i]
			if w.kind != kindBan {
				continue
			}
			var d [1]headgate.Decision
			op := headgate.Op{Key: key, Policy: w.id, Window: banWindow, Kind: headgate.Peek}
			if err := store.Apply(ctx, []headgate.Op{op}, d[:]); err != nil {
				return false, fmt.Errorf("guard: the ban stays: %w", err)
			}
			return d[0].Reason == headgate.Banned, nil // All versions of a rule's ban share one state.
		}
	}
	return false, nil
}
