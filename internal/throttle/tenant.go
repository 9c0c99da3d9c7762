package throttle

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// memory is the time constant of a tenant's use: what a tenant took a time ago counts by the
// part exp(-time/memory). A tenant is active for this long after its last request.
const memory = 2 * time.Second

// tenant is the state of one tenant.
type tenant struct {
	id       uint32
	flows    [bucketCount]flow
	requests int                    // queued or admitted
	place    *entry[string, tenant] // in the table of tenants; nil for the account of all others

	at           headgate.Instant // the time of used and usedCritical
	used         time.Duration    // the work admitted lately, decayed
	usedCritical time.Duration
	queued       time.Duration
	queuedCrit   time.Duration

	active        bool
	seen          headgate.Instant // the last arrival
	before, after *tenant          // in the list of active tenants, by the last arrival
}

// decay brings the use to the time now.
func (t *tenant) decay(now headgate.Instant) {
	if now <= t.at {
		return
	}
	part := fade(float64(now.Sub(t.at)) / float64(memory))
	t.at = now
	t.used = time.Duration(float64(t.used) * part)
	t.usedCritical = time.Duration(float64(t.usedCritical) * part)
}

// fade returns exp(-x) for x from 0 on. Most requests end within 30 ms, where six terms of the series are as exact as math.Exp in a
// fifth of the time.
func fade(x float64) float64 {
	if x > 1.0/64 {
		return math.Exp(-x)
	}
	return 1 - x*(1-x*(1.0/2)*(1-x*(1.0/3)*(1-x*(1.0/4)*(1-x*(1.0/5)*(1-x*(1.0/6))))))
}

// charge adds work of an admitted request, or takes back what was too much.
func (t *tenant) charge(c Class, work time.Duration) {
	t.used = max(t.used+work, 0)
	if c.critical() {
		t.usedCritical = max(t.usedCritical+work, 0)
	}
}

// line adds work to the tenant's queued work, or takes it out.
func (t *tenant) line(c Class, work time.Duration) {
	t.queued += work
	if c.critical() {
		t.queuedCrit += work
	}
}

// within reports whether a new request of the class is within the tenant's share of work. The
// tenant's critical work may be twice the share: other tenants seldom need all of theirs. The
// new request itself does not count, so that its size does not decide.
func (t *tenant) within(c Class, share time.Duration) bool {
	if c.critical() {
		return t.usedCritical+t.queuedCrit <= 2*share
	}
	return t.used+t.queued <= share
}

// tenants has the state of all tenants, and a list of the active ones.
type tenants struct {
	known       table[string, tenant]
	others      tenant // tenants beyond the bound
	first, last *tenant
	active      int
}

// find returns the tenant with a name, and makes it active.
func (t *tenants) find(now headgate.Instant, name string) *tenant {
	found, ok := t.known.get(name)
	if !ok {
		found = t.add(name)
	}
	t.touch(found, now)
	found.decay(now)
	return found
}

// add makes room for a tenant by forgetting the one without requests that was used longest ago.
func (t *tenants) add(name string) *tenant {
	if t.known.full() {
		oldest := t.known.oldest()
		if oldest == nil {
			return &t.others
		}
		t.rest(oldest)
	}
	added, number := t.known.add(name)
	added.value.id, added.value.place = number, added
	return &added.value
}

// retain counts a request of a tenant. A tenant with requests is not forgotten.
func (t *tenants) retain(who *tenant) {
	if who.requests++; who.requests == 1 && who.place != nil {
		t.known.hold(who.place)
	}
}

// release counts a request that ended, or left the queue.
func (t *tenants) release(who *tenant) {
	if who.requests--; who.requests == 0 && who.place != nil {
		t.known.free(who.place)
	}
}

// touch makes a tenant active, and ends the activity of tenants that were not seen for the time
// memory and have no requests.
func (t *tenants) touch(found *tenant, now headgate.Instant) {
	t.append(found, now)
	for t.first != found && now.Sub(t.first.seen) > memory {
		if quiet := t.first; quiet.requests > 0 {
			t.append(quiet, now)
		} else {
			t.rest(quiet)
		}
	}
}

// append puts a tenant at the end of the active list.
func (t *tenants) append(found *tenant, now headgate.Instant) {
	found.seen = max(found.seen, now)
	if found == t.last {
		return
	}
	t.rest(found)
	found.active = true
	if found.before = t.last; t.last != nil {
		t.last.after = found
	} else {
		t.first = found
	}
	t.last = found
	t.active++
}

// rest takes a tenant out of the active list.
func (t *tenants) rest(found *tenant) {
	if !found.active {
		return
	}
	if found.before != nil {
		found.before.after = found.after
	} else {
		t.first = found.after
	}
	if found.after != nil {
		found.after.before = found.before
	} else {
		t.last = found.before
	}
	found.before, found.after, found.active = nil, nil, false
	t.active--
}
