package proxy

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/oldest"
)

const (
	// DefaultMaxRequests bounds the requests in flight over all connections.
	DefaultMaxRequests = 16384
	// unread is how long a client must have left its answer unread, or the next part of its
	// body unsent, before its request gives way to another: longer than most round trips.
	unread = 100 * time.Millisecond
	// fieldsOfPlace is how much the fields of a request may take for one place. A request
	// whose fields take more takes several places.
	fieldsOfPlace = 16 << 10
	// fieldOverhead is what a field takes beside its name and its values: the map's
	// entry, a slice, and the rounding of allocations.
	fieldOverhead = 128
	// valueOverhead is what a further value of a field takes beside its bytes.
	valueOverhead = 32
)

// place is the right of one request to be in flight.
type place struct {
	client  *clientConn
	weight  int64         // in places; 0 when it has given way
	refused bool          // the request is only answered with 503
	ticket  *guard.Ticket // ends with outcome when the place is released; nil as a rule
	outcome guard.Outcome
	since   atomic.Int64 // since when the request waits for its client, in nanoseconds of Unix time; reading, or gaveWay
	next    *place       // of those in use, under mu, or free
	last    *place
	nextOf  *place // of those of one client, under mu
	lastOf  *place
}

// The values of place.since besides a time.
const (
	reading int64 = 0
	gaveWay int64 = -1
)

// places bounds the requests in flight. Those that are refused are bounded too: their
// answers wait for their clients as others do.
type places struct {
	mu      sync.Mutex
	bound   int64
	used    int64
	refused int64
	leaving int64 // that have given way, at most mostLeaving and those of one client, and are not released yet
	first   *place
	free    *place
	oldest  oldest.Finder[*place]
}

// mostRefused is how many answers may say at once that there are too many requests.
func (p *places) mostRefused() int64 { return p.bound/16 + 16 }

// mostLeaving is how many may have given way and not have ended yet.
func (p *places) mostLeaving() int64 { return p.bound/8 + maxStreams }

// reserve is how many more may have given way, and be refused, for clients that hold no
// other place.
func (p *places) reserve() int64 { return p.bound/32 + 4 }

// kept is how many places are kept for clients that hold none.
func (p *places) kept() int64 { return p.bound / 32 }

// take gives a place to a request. When all are taken, the request that has waited
// longest for its client, to read its answer or to send its body, gives way: its
// connection is closed. If there is none, the place is one of a refused request, and nil
// beyond the bound of these.
// A client that holds no place finds room where one that holds some does not: else
// those that send most have it all while the service works on what they sent, and
// while what gave way is still ending.
func (p *places) take(c *clientConn, weight int64, now time.Time) *place {
	p.mu.Lock()
	bound, mostLeaving, mostRefused := p.bound, p.mostLeaving(), p.mostRefused()
	switch {
	case c == nil:
	case c.held == nil:
		mostLeaving, mostRefused = mostLeaving+p.reserve(), mostRefused+p.reserve()
	default:
		bound -= p.kept()
	}
	weight = min(weight, bound)
	var leaving []*clientConn
	for p.used+weight > bound {
		victim := p.giveWay(now.UnixNano(), mostLeaving)
		if victim == nil {
			break
		}
		leaving = append(leaving, victim)
	}
	var got *place
	switch {
	case p.used+weight <= bound:
		got = p.link(c, weight)
		p.used += weight
	case p.refused < mostRefused:
		got = p.link(c, 0)
		got.refused = true
		p.refused++
	}
	p.mu.Unlock()
	for _, victim := range leaving {
		victim.abort()
	}
	return got
}

// giveWay takes the place of the request that has waited longest, and gives its client.
func (p *places) giveWay(now, mostLeaving int64) *clientConn {
	if p.leaving >= mostLeaving {
		return nil // They go within milliseconds, and still take memory.
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

// leave takes the place of a request that has given way.
func (p *places) leave(at *place) {
	p.used -= at.weight
	at.weight = 0
	p.leaving++
}

// leaveWith takes the places of all requests that wait for a client, which is closed.
func (p *places) leaveWith(c *clientConn) {
	if c == nil {
		return
	}
	for at := c.held; at != nil; at = at.nextOf {
		if since := at.since.Load(); since > 0 && at.weight > 0 && at.since.CompareAndSwap(since, gaveWay) {
			p.leave(at)
		}
	}
}

func (p *places) link(c *clientConn, weight int64) *place {
	at := p.free
	if at == nil {
		at = new(place)
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
		if at.nextOf = c.held; c.held != nil {
			c.held.lastOf = at
		}
		c.held = at
	}
	return at
}

// unlink takes a place out of those in use, and of those of its client.
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
		at.client.held = at.nextOf
	}
	if at.nextOf != nil {
		at.nextOf.lastOf = at.lastOf
	}
}

// release gives a place back.
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

// waits notes that something is being written to the client. A nil place is one of
// tests.
func (at *place) waits(now time.Time) {
	if at != nil {
		at.since.CompareAndSwap(reading, now.UnixNano())
	}
}

// goesOn notes that the client has taken what was written.
func (at *place) goesOn() {
	if at == nil {
		return
	}
	if since := at.since.Load(); since > 0 {
		at.since.CompareAndSwap(since, reading) // It fails if the request has just given way.
	}
}

// expects notes that the next part of the client's body is waited for. It gives the time
// for has; 0 when the request waits already, or has given way.
func (at *place) expects(now time.Time) (since int64) {
	if since = now.UnixNano(); at != nil && at.since.CompareAndSwap(reading, since) {
		return since
	}
	return 0
}

// has notes that the body is not waited for any more. What the answer waits for since
// another time stands.
func (at *place) has(since int64) {
	if at != nil && since != 0 {
		at.since.CompareAndSwap(since, reading)
	}
}

// weigh tells how many places a request takes.
func weigh(r *http.Request) int64 {
	bytes := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		bytes += fieldOverhead + len(name)
		for _, v := range values {
			bytes += valueOverhead + len(v)
		}
	}
	return 1 + int64(bytes/fieldsOfPlace)
}
