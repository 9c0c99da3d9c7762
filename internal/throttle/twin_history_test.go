package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// This file has the histories of a twin. Each quantity is replayed from its whole history.

// twinAccount is the history of a tenant.
type twinAccount struct {
	name    string
	seen    headgate.Instant
	charges []twinCharge
	tags    [bucketCount][]twinTag
}

// twinCharge is work that a tenant took, or gives back.
type twinCharge struct {
	at    headgate.Instant
	class Class
	work  time.Duration
}

// note adds a charge. Charges of 0 matter too: at each, the use is rounded to nanoseconds.
func (a *twinAccount) note(at headgate.Instant, c Class, work time.Duration) {
	a.charges = append(a.charges, twinCharge{at, c, work})
}

// use returns the work that the tenant took lately, and that of its critical requests alone.
func (a *twinAccount) use() (all, critical time.Duration) {
	var at headgate.Instant
	for _, c := range a.charges {
		if c.at > at {
			part := math.Exp(-float64(c.at.Sub(at)) / float64(2*time.Second))
			all, critical, at = time.Duration(float64(all)*part), time.Duration(float64(critical)*part), c.at
		}
		all = max(all+c.work, 0)
		if c.class <= Critical {
			critical = max(critical+c.work, 0)
		}
	}
	return all, critical
}

// plainUse returns the sum of doc.go: work x exp(-age / 2 s). It also returns how much use may
// differ: a nanosecond for each rounding, and work that was given back when the use was 0.
func (a *twinAccount) plainUse() (use, over float64) {
	var at headgate.Instant
	for _, c := range a.charges {
		if c.at > at {
			use *= math.Exp(-float64(c.at-at) / 2e9)
			at = c.at
		}
		use += float64(c.work)
		over = max(over, -use)
	}
	return use, over + float64(len(a.charges))
}

// twinTag is a change of the start tag of a tenant in a bucket.
type twinTag struct {
	first   bool          // a request arrives, and it is the only one
	virtual time.Duration // the virtual time then
	more    time.Duration // work that the tenant is charged with
}

func (a *twinAccount) tag(bucket int, change twinTag) {
	a.tags[bucket] = append(a.tags[bucket], change)
}

// start returns the start tag of the first queued request, or F when none is queued.
func (a *twinAccount) start(bucket int) time.Duration {
	var tag time.Duration
	for _, change := range a.tags[bucket] {
		if change.first {
			tag = max(tag, change.virtual)
		}
		tag += change.more
	}
	return tag
}

// twinDrain is the history of the queue and of the work that ended.
type twinDrain struct{ events []twinEvent }

type twinEvent struct {
	at     headgate.Instant
	queued bool // Requests are queued after the event.
	ended  bool
	work   time.Duration
}

func (d *twinDrain) note(e twinEvent) { d.events = append(d.events, e) }

// rate returns the work that ended per time with a queue, both decayed with 1 s, and whether the
// time is at least 50 ms.
func (d *twinDrain) rate() (float64, bool) {
	var work, busy float64
	var since headgate.Instant
	was := false
	for _, e := range d.events {
		if passed := float64(e.at.Sub(since)); was && passed > 0 && (e.ended || !e.queued) {
			part := math.Exp(-passed / float64(time.Second))
			work, busy, since = work*part, busy*part+passed, e.at
		}
		if was && e.ended {
			work += float64(e.work)
		}
		if !was && e.queued {
			since = e.at
		}
		was = e.queued
	}
	if busy < float64(50*time.Millisecond) || work <= 0 {
		return 0, false
	}
	return work / busy, true
}

// twinTenants has all accounts, by their last use.
type twinTenants struct {
	most   int
	known  []*twinAccount
	others *twinAccount
	active []*twinAccount // by the last arrival
}

// account returns the account of a tenant that has a request now. requests counts those of an account.
func (t *twinTenants) account(now headgate.Instant, name string, requests func(*twinAccount) int) *twinAccount {
	a := t.find(name, requests)
	a.note(now, Sheddable, 0)
	a.seen = max(a.seen, now)
	t.active = append(without(t.active, a), a)
	for first := t.active[0]; first != a && now.Sub(first.seen) > 2*time.Second; first = t.active[0] {
		t.active = t.active[1:]
		if requests(first) > 0 {
			first.seen = max(first.seen, now)
			t.active = append(t.active, first)
		}
	}
	return a
}

// find returns the account with a name. A new one takes the place of the account without requests
// that was used longest ago, or shares the account of all others.
func (t *twinTenants) find(name string, requests func(*twinAccount) int) *twinAccount {
	for _, a := range t.known[:len(t.known)] {
		if a.name == name {
			t.known = append(without(t.known, a), a)
			return a
		}
	}
	if len(t.known) >= t.most {
		oldest := t.idle(requests)
		if oldest == nil {
			return t.others
		}
		t.known, t.active = without(t.known, oldest), without(t.active, oldest)
	}
	a := &twinAccount{name: name}
	t.known = append(t.known, a)
	return a
}

// ended notes that a request of the account ended or left the queue. The account is used until then.
func (t *twinTenants) ended(a *twinAccount) {
	if slices.Contains(t.known, a) {
		t.known = append(without(t.known, a), a)
	}
}

func (t *twinTenants) idle(requests func(*twinAccount) int) *twinAccount {
	for _, a := range t.known {
		if requests(a) == 0 {
			return a
		}
	}
	return nil
}
