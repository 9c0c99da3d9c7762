package proxy

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/oldest"
	"github.com/headgate/headgate/guard"
)

const (
	// DefaultMaxRequests bounds the requests in flight over all connections.
	DefaultMaxRequests = 16384
	// unread is how long a request must have waited for its client before the server may
	// evict it. The client is slow to read its response or to send its body. The time is
	// longer than most round trips.
	unread = 100 * time.Millisecond
	// fieldsOfPlace is how many bytes of header one place covers. A request with a larger
	// header takes several places.
	fieldsOfPlace = 16 << 10
	// fieldOverhead is the memory of a field in addition to its name and values: the map
	// entry, a slice, and allocation rounding.
	fieldOverhead = 128
	// valueOverhead is the memory of each value in addition to its bytes.
	valueOverhead = 32
)

// place is the right of one request to be in flight.
type place struct {
	in      *places
	client  *clientConn
	weight  int64         // number of places that the request uses; 0 after its eviction
	refused bool          // the response is only a 503
	ticket  *guard.Ticket // if not nil, it ends with outcome when the place is released
	again   bool          // the ticket may then be used again
	outcome guard.Outcome
	times   times
	since   atomic.Int64 // start of the wait for the client, by in.clock; or reading, or gaveWay
	next    *place       // in the list of used places, guarded by mu, or in the free list
	last    *place
	nextOf  *place // in the list of the client's places, guarded by mu
	lastOf  *place
}

// The values of place.since that are not times.
const (
	reading int64 = 0
	gaveWay int64 = -1
)

// places bounds the requests in flight. Refused requests have their own bound, because
// their responses also wait for their clients.
type places struct {
	mu      sync.Mutex
	bound   int64
	used    int64
	refused int64
	pressed func() bool // memory is near its bound: see pressure
	leaving int64       // evicted requests that have not ended; at most mostLeaving plus those of one client
	first   *place
	free    *place
	oldest  oldest.Finder[*place]
	clock   oldest.Clock // of place.since
}

// newPlaces returns places for bound requests. now is a time of time.Now.
func newPlaces(bound int64, now time.Time) *places {
	return &places{bound: bound, clock: oldest.NewClock(now), pressed: func() bool { return false }}
}

// mostRefused is the bound for 503 responses in flight.
func (p *places) mostRefused() int64 { return p.bound/16 + 16 }

// mostLeaving is the bound for evicted requests that have not ended.
func (p *places) mostLeaving() int64 { return p.bound/8 + maxStreams }

// reserve is how much mostLeaving and mostRefused grow for clients without a place.
func (p *places) reserve() int64 { return p.bound/32 + 4 }

// kept is the number of places reserved for clients without a place.
func (p *places) kept() int64 { return p.bound / 32 }

// take returns a place for a request. When all places are used, it evicts the request
// that has waited longest for its client, and closes that client's connection. If no
// request can be evicted, the place is for a 503 response. Beyond the bound for those, take
// returns nil.
//
// Some places are reserved for clients without a place. Otherwise the clients that send
// most could occupy every place while the service works and while evicted requests end.
func (p *places) take(c *clientConn, weight int64, now time.Time) *place {
	p.mu.Lock()
	bound, mostLeaving, mostRefused := p.bound, p.mostLeaving(), p.mostRefused()
	switch {
	case c == nil:
	case c.firstPlace == nil:
		mostLeaving, mostRefused = mostLeaving+p.reserve(), mostRefused+p.reserve()
	default:
		bound -= p.kept()
	}
	weight = min(weight, bound)
	var leaving []*clientConn
	crowded := p.pressed() && c != nil && c.firstPlace != nil && !c.Trusted()
	for p.used+weight > bound && !crowded {
		victim := p.giveWay(p.clock.At(now), mostLeaving)
		if victim == nil {
			break
		}
		leaving = append(leaving, victim)
	}
	var got *place
	switch {
	case p.used+weight <= bound && !crowded:
		got = p.link(c, weight)
		p.used += weight
	case p.refused < mostRefused:
		got = p.link(c, 0)
		got.refused = true
		p.refused++
	}
	p.mu.Unlock()
	for _, victim := range leaving {
		victim.Abort()
	}
	return got
}

// grow takes more places for a request that holds more memory. It returns false if there are none, or if memory is near its bound. The
// places that are kept for clients without one stay free.
func (at *place) grow(places int64) bool {
	if at == nil || places <= 0 {
		return true
	}
	p := at.in
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.weight == 0 || p.used+places > p.bound-p.kept() || p.pressed() {
		return false
	}
	at.weight += places
	p.used += places
	return true
}

// shrink gives places of grow back. An evicted request has none.
func (at *place) shrink(places int64) {
	if at == nil || places <= 0 {
		return
	}
	p := at.in
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.weight > places {
		at.weight -= places
		p.used -= places
	}
}

// giveWay evicts the request that has waited longest and returns its client. The caller
// holds mu.
func (p *places) giveWay(now, mostLeaving int64) *clientConn {
	if p.leaving >= mostLeaving {
		return nil // Evicted requests end within milliseconds, but use memory until then.
	}
	for {
		victim, since, ok := p.oldest.Next(now, func(add func(*place, int64)) {
			for at := p.first; at != nil; at = at.next {
				if since := at.since.Load(); since > 0 && at.weight > 0 && now-since >= int64(unread) {
					add(at, since)
				}
			}
		})
		switch {
		case !ok:
			return nil
		case victim.weight > 0 && victim.since.CompareAndSwap(since, gaveWay):
			c := victim.client
			p.leave(victim)
			p.leaveWith(c)
			return c
		}
	}
}

// leave frees the places of an evicted request. The caller holds mu.
func (p *places) leave(at *place) {
	p.used -= at.weight
	at.weight = 0
	p.leaving++
}

// leaveWith evicts all requests that wait for the client, whose connection is closed.
// The caller holds mu.
func (p *places) leaveWith(c *clientConn) {
	if c == nil {
		return
	}
	for at := c.firstPlace; at != nil; at = at.nextOf {
		if since := at.since.Load(); since > 0 && at.weight > 0 && at.since.CompareAndSwap(since, gaveWay) {
			p.leave(at)
		}
	}
}

func (p *places) link(c *clientConn, weight int64) *place {
	at := p.free
	if at == nil {
		at = &place{in: p}
	} else {
		p.free = at.next
	}
	at.client, at.weight, at.refused, at.last, at.next = c, weight, false, nil, p.first
	at.since.Store(reading)
	if p.first != nil {
		p.first.last = at
	}
	p.first = at
	if at.lastOf, at.nextOf = nil, nil; c != nil {
		if at.nextOf = c.firstPlace; c.firstPlace != nil {
			c.firstPlace.lastOf = at
		}
		c.firstPlace = at
	}
	return at
}

// unlink removes a place from both lists. The caller holds mu.
func (p *places) unlink(at *place) {
	if at.last == nil {
		p.first = at.next
	} else {
		at.last.next = at.next
	}
	if at.next != nil {
		at.next.last = at.last
	}
	if at.lastOf != nil {
		at.lastOf.nextOf = at.nextOf
	} else if at.client != nil {
		at.client.firstPlace = at.nextOf
	}
	if at.nextOf != nil {
		at.nextOf.lastOf = at.lastOf
	}
}

// release makes a place free.
func (p *places) release(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case at.refused:
		p.refused--
	case at.weight == 0:
		p.leaving--
	default:
		p.used -= at.weight
	}
	p.unlink(at)
	at.lastOf, at.nextOf = nil, nil
	at.client, at.last, at.weight, at.refused = nil, nil, 0, false
	at.since.Store(reading)
	at.next, p.free = p.free, at
}

// startWait notes that a write to the client has started. at is nil in some tests.
func (at *place) startWait(now time.Time) {
	if at != nil {
		t := at.in.clock.At(now)
		at.times.write(t)
		at.since.CompareAndSwap(reading, t)
	}
}

// endWait notes that the client has taken what was written.
func (at *place) endWait() {
	if at == nil {
		return
	}
	if since := at.since.Load(); since > 0 {
		at.since.CompareAndSwap(since, reading) // The swap fails if the request has just been evicted.
	}
}

// startBodyWait notes that the request waits for more of the client's body. It returns
// the time to pass to endBodyWait, or 0 if the request already waits or was evicted.
func (at *place) startBodyWait(now time.Time) (since int64) {
	if at == nil {
		return 0
	}
	if since = at.in.clock.At(now); at.since.CompareAndSwap(reading, since) {
		return since
	}
	return 0
}

// endBodyWait ends the wait that started at since, but not a wait of the response.
func (at *place) endBodyWait(since int64) {
	if at != nil && since != 0 {
		at.since.CompareAndSwap(since, reading)
	}
}

// weigh returns how many places a request takes.
func weigh(r *http.Request, l *http1.List) int64 {
	bytes := len(r.RequestURI) + len(r.Host)
	for i := range l.Len() {
		name, value := l.Line(i)
		bytes += fieldOverhead + len(name) + valueOverhead + len(value)
	}
	for name := range r.Trailer {
		bytes += fieldOverhead + len(name)
	}
	return 1 + int64(bytes/fieldsOfPlace)
}
