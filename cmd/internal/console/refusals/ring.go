// Package refusals is the room of the last refusals of an instance: a ring that keeps them, and the calls that look them up.
package refusals

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/rule"
)

const (
	// places is the number of refusals that the ring keeps, of 256 bytes each: 1 MiB.
	places = 4096
	// perSecond bounds the refusals that are kept in a second, so that a flood leaves at least twenty seconds.
	perSecond = 200
)

// Bounds of the texts of a record, in bytes. They share its 256 bytes.
const (
	mostID     = 40
	mostMethod = 7
	mostPath   = 48
	mostHost   = 24
	mostKey    = 64
)

// form says how a key is read.
type form uint8

const (
	formKey    form = iota
	formClient      // of fair share
	formTree        // of a domain
	formNone
)

// record is one refusal.
type record struct {
	at        int64 // nanoseconds since 1970; 0 for an empty place
	decision  guard.DecisionID
	id        uint64 // the hash of the whole id of the request; 0 without one
	remaining int64
	retry     time.Duration
	rule      string
	part      *rule.Part // that names the client; with formClient
	reason    headgate.Reason
	form      form
	shadow    bool
	long      uint8 // a bit for each text that was cut
	lengths   [5]uint8
	text      [mostID + mostMethod + mostPath + mostHost + mostKey]byte
}

// The texts of a record, in their order.
const (
	textID = iota
	textMethod
	textPath
	textHost
	textKey
)

// most returns the bound of a text.
func most(n int) int {
	switch n {
	case textID:
		return mostID
	case textMethod:
		return mostMethod
	case textPath:
		return mostPath
	case textHost:
		return mostHost
	default:
		return mostKey
	}
}

// ring has the last refusals.
type ring struct {
	clock  func() time.Time
	seed   maphash.Seed
	second atomic.Int64
	kept   atomic.Uint64 // in this second
	skips  atomic.Uint64 // since the start
	noKeys atomic.Bool

	mu   sync.Mutex // guards the fields below
	next int
	all  [places]record
}

func newRing(clock func() time.Time) *ring { return &ring{clock: clock, seed: maphash.MakeSeed()} }

// observe keeps a refusal, unless there were too many in the second. It allocates nothing.
func (g *ring) observe(req *headgate.Request, a *guard.Answer, r *guard.Result) {
	now := g.clock().UnixNano()
	if !g.admit(now / int64(time.Second)) {
		g.skips.Add(1)
		return
	}
	var key [mostKey + 1]byte
	own, how := key[:0], formNone
	if !g.noKeys.Load() && len(r.Rule.Key) > 0 || r.InTree() {
		own, how = r.AppendRawKeyStart(own, mostKey+1), formOf(r)
	}
	var id uint64
	if req != nil && req.ID != "" {
		id = maphash.String(g.seed, req.ID)
	}
	decision := a.DecisionID()
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.all[g.next]
	g.next = (g.next + 1) % places
	p.at, p.decision, p.id, p.remaining, p.retry = now, decision, id, r.Decision.Remaining, r.Decision.RetryAfter
	p.rule, p.part, p.reason, p.form, p.shadow, p.long = r.Rule.Name, nil, r.Decision.Reason, how, !r.Enforced(), 0
	if r.Final() {
		p.retry = 0
	}
	if how == formClient {
		p.part = &r.Rule.Key[0]
	}
	from := 0
	if req != nil {
		host := req.Authority
		if host == "" {
			host = req.Host
		}
		from = p.put(textID, from, req.ID)
		from = p.put(textMethod, from, req.Method)
		from = p.put(textPath, from, req.Path)
		from = p.put(textHost, from, host)
	} else {
		clear(p.lengths[:])
	}
	p.putBytes(textKey, from, own)
}

func formOf(r *guard.Result) form {
	switch {
	case r.Stage == guard.FairShareName || r.Stage == guard.SentName:
		return formClient
	case r.InTree():
		return formTree
	default:
		return formKey
	}
}

// setKeys says whether refusals are kept with their keys. Keys that are there are dropped when they are no longer kept.
func (g *ring) setKeys(keep bool) {
	if was := g.noKeys.Swap(!keep); was || keep {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.all {
		p := &g.all[i]
		clear(p.text[p.start(textKey):])
		p.form, p.lengths[textKey] = formNone, 0
	}
}

// admit reports whether a refusal of a second is kept.
func (g *ring) admit(second int64) bool {
	if was := g.second.Load(); was != second && g.second.CompareAndSwap(was, second) {
		g.kept.Store(0)
	}
	return g.kept.Load() < perSecond && g.kept.Add(1) <= perSecond
}

// put copies a text to its place, and gives the place of the next.
func (p *record) put(n, from int, text string) int {
	length := copy(p.text[from:from+most(n)], text)
	p.lengths[n] = uint8(length)
	if length < len(text) {
		p.long |= 1 << n
	}
	return from + length
}

func (p *record) putBytes(n, from int, text []byte) {
	length := copy(p.text[from:from+most(n)], text)
	p.lengths[n] = uint8(length)
	if length < len(text) {
		p.long |= 1 << n
	}
}

// start returns the position of a text.
func (p *record) start(n int) (from int) {
	for i := range n {
		from += int(p.lengths[i])
	}
	return from
}

// textOf returns a text of the record.
func (p *record) textOf(n int) string {
	from := p.start(n)
	return string(p.text[from : from+int(p.lengths[n])])
}

// newest calls f with copies of the records, the newest first, until it returns false.
func (g *ring) newest(f func(*record) bool) {
	const chunk = 64 // The lock is short: refusals wait for it.
	g.mu.Lock()
	at := g.next
	g.mu.Unlock()
	var some [chunk]record
	for done := 0; done < places; done += chunk {
		g.mu.Lock()
		for i := range some {
			some[i] = g.all[(at-1-done-i+2*places)%places]
		}
		g.mu.Unlock()
		for i := range some {
			if some[i].at != 0 && !f(&some[i]) {
				return
			}
		}
	}
}

// keyText returns the key in the form of names; "" without names.
func (p *record) keyText(names *rule.KeyNames) string {
	if names == nil || p.form == formNone {
		return ""
	}
	raw := p.textOf(textKey)
	if p.long&(1<<textKey) != 0 {
		return "(a long key)"
	}
	switch p.form {
	case formClient:
		return string(names.AppendClient(nil, *p.part, raw))
	case formTree:
		return string(domain.AppendKeyName(nil, names, raw))
	case formKey, formNone:
	}
	return string(names.AppendKey(nil, raw))
}
