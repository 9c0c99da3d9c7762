package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// BanEntry is a key that is banned now, as far as this guard has seen it.
type BanEntry struct {
	// ID names the entry for Lift.
	ID string `json:"id"`
	// Rule is the name of the rule, and Key what it counts under, as people read it.
	Rule string `json:"rule"`
	Key  string `json:"key"`
	// Shadow tells of a ban that is not enforced.
	Shadow bool `json:"shadow"`
	// Until is when the ban ends, by the store's clock.
	Until time.Time `json:"until"`
}

// maxBans bounds the bans that are remembered by name, at a kilobyte or so each.
// The store bans all the same who is not among them.
const maxBans = 10_000

// bans remembers the bans that were met.
type bans struct {
	mu   sync.RWMutex
	met  map[uint64]*ban // by the hash of the key; under mu
	more atomic.Uint64
	// swept is when those that had ended were last looked for; under mu.
	swept headgate.Instant
}

// ban is one of them. Only until and shadow change.
type ban struct {
	rule, text string
	key        string
	shadow     atomic.Bool
	until      atomic.Int64
}

// noteBans remembers the bans that an answer tells of. A ban that is known costs
// a look into a map.
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
		met := &ban{rule: strings.Clone(r.Rule.Name), text: r.Rule.KeyText(req), key: strings.Clone(r.key)}
		met.update(until, !r.Enforced())
		g.state.bans.meet(hash, r.Decision.At, met)
	}
}

// update writes what has changed alone: or all cores would write the same words.
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

// sweep forgets the bans that have ended. mu is held.
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

// followRules forgets the bans of rules that ban no more, and notes which rules are
// shadows now. It looks at each ban once.
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

// Bans lists the bans that this guard has met and that have not ended at now, by
// rule and then by key. now is a time by the store's clock. It remembers 10,000; more
// tells that refusals of others were seen since there was room last. A ban of Local's
// is listed until its end, though the store, when it is back, knows nothing of it.
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

// list gives them in no order: requests wait for it, and not for the sorting.
func (b *bans) list(now headgate.Instant) (entries []BanEntry, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	more = b.more.Load() > 0
	b.sweep(now)
	entries = make([]BanEntry, 0, len(b.met))
	for hash, met := range b.met {
		entries = append(entries, BanEntry{
			ID: banID(hash), Rule: met.rule, Key: met.text, Shadow: met.shadow.Load(),
			Until: headgate.Instant(met.until.Load()).Time(),
		})
	}
	return entries, more
}

func banID(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// Lift ends the ban with an ID of Bans and forgets the key's attempts, in Local
// too; what its limits have counted stays. It reports false when no such ban is known.
func (g *Guard) Lift(ctx context.Context, id string) (lifted bool, err error) {
	s := g.now()
	if s == nil {
		return false, headgate.ErrNotMade
	}
	hash, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return false, nil // What is no ID is no ban's.
	}
	b := &g.state.bans
	b.mu.RLock()
	met, found := b.met[hash]
	b.mu.RUnlock()
	if !found {
		return false, nil
	}
	stores := [...]headgate.Store{s.config.Local, g.store}
	for _, store := range stores {
		if store == nil {
			continue
		}
		if err := store.Forget(ctx, []headgate.Op{{Key: met.key, Window: banWindow}}); err != nil {
			return false, fmt.Errorf("guard: the ban stays: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.met, hash)
	return true, nil
}
