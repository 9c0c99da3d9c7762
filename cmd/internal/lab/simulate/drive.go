package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/sim"
	"github.com/headgate/headgate/internal/sim/service"
)

// call is one request of a client, with the attempt that the engine decides.
type call struct {
	engine.Attempt

	group *group
	key   int64
	cost  int64
	tries int // those before this one
	job   service.Job
}

// group is a Group that sends.
type group struct {
	*Group

	number   int
	firstKey int64
	streams  []stream
	names    bool // a header names the key
}

// stream has the requests of one client of a group.
type stream struct {
	group  *group
	shape  shape
	random *rand.Rand
	zipf   *rand.Zipf
	client int64
	sent   int64
	at     headgate.Instant // of the next request
}

// advance draws the next request, and reports false after the last one.
func (s *stream) advance(start headgate.Instant, length time.Duration) bool {
	until := length
	if s.group.Until > 0 {
		until = min(until, s.group.Until)
	}
	at := s.group.From + s.shape.next(s.random)
	s.at = start.Add(at)
	return at < until
}

// key returns the key of the next request.
func (s *stream) key() int64 {
	if s.zipf != nil {
		return int64(s.zipf.Uint64())
	}
	return (s.client + s.sent*s.group.Clients) % s.group.Keys
}

// watcher follows what happens to calls.
type watcher interface {
	arrived(c *call, now headgate.Instant)
	decided(c *call, now headgate.Instant)
}

// driver sends the requests of a scenario to an engine.
type driver struct {
	*Scenario

	engine  *engine.Engine
	watch   watcher
	groups  []group
	due     sim.Queue[*stream]
	random  *rand.Rand // of retries and services
	service *service.Service
	start   headgate.Instant
	free    []*call
	sent    int64
	tell    func(sent int64, done float64)
}

// mostRequests bounds a run, which takes some minutes then.
const mostRequests = 200_000_000

var errTooMany = errors.New("simulate: the run has more than 200,000,000 requests: use a shorter time or fewer clients")

// newDriver prepares the clients of a scenario.
func newDriver(s *Scenario, e *engine.Engine, watch watcher) (*driver, error) {
	if s.expects() > 2*mostRequests {
		return nil, UsageError{errTooMany}
	}
	d := &driver{Scenario: s, engine: e, watch: watch, start: e.Now(), groups: make([]group, len(s.Groups))}
	d.due.Before = func(a, b *stream) bool {
		return a.at < b.at || a.at == b.at && (a.group.number < b.group.number || a.group.number == b.group.number && a.client < b.client)
	}
	d.random = rand.New(rand.NewPCG(s.Seed, 1<<63))
	if s.Service != nil {
		d.service = service.New(e.Time(), s.Service.Model)
	}
	first := int64(0)
	for i := range s.Groups {
		g := &d.groups[i]
		*g = group{Group: &s.Groups[i], number: i, firstKey: first, streams: make([]stream, s.Groups[i].Clients)}
		first += g.Keys
		for _, h := range g.Headers {
			g.names = g.names || strings.Contains(h.Value, keyWord)
		}
		for client := range g.streams {
			x := &g.streams[client]
			*x = stream{group: g, client: int64(client)}
			x.random = rand.New(rand.NewPCG(s.Seed, uint64(i)<<32|uint64(client)))
			if g.Zipf > 1 {
				x.zipf = rand.NewZipf(x.random, g.Zipf, 1, uint64(g.Keys-1))
			}
			var err error
			if x.shape, err = newShape(g.Traffic, g.Rate); err != nil {
				return nil, err
			}
			if x.advance(d.start, s.Length) {
				d.due.Push(x)
			}
		}
	}
	return d, nil
}

// looksEvery is the number of requests between two looks at the context and the progress.
const looksEvery = 4096

// run sends all requests, and lets those that wait depart. It reports false if ctx ended before.
func (d *driver) run(ctx context.Context) (whole bool, err error) {
	for d.due.Len() > 0 {
		if d.sent%looksEvery == 0 {
			if ctx.Err() != nil {
				return false, nil //nolint:nilerr // because an interrupted run has a result.
			}
			if d.tell != nil {
				d.tell(d.sent, float64(d.engine.Now()-d.start)/float64(d.Length))
			}
		}
		if d.sent >= mostRequests {
			return false, errTooMany
		}
		x := d.due.Pop()
		d.engine.Advance(x.at)
		d.send(x.group, x.key(), x.group.Cost, 0)
		if x.sent++; x.advance(d.start, d.Length) {
			d.due.Push(x)
		}
	}
	d.engine.Advance(d.start.Add(d.Length)) // Retries until the end arrive.
	d.engine.Finish()
	return ctx.Err() == nil, nil
}

// keyWord stands for the name of a key in the value of a header.
const keyWord = "{key}"

// send makes a request now.
func (d *driver) send(g *group, key, cost int64, tries int) {
	d.sent++
	c := d.take()
	c.group, c.key, c.cost, c.tries = g, g.firstKey+key, cost, tries
	number := uint32(c.key)
	c.Request = headgate.Request{
		Method: g.Method, Host: g.Host, Authority: g.Host, Path: g.Path, Cost: cost,
		IP: netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)}),
	}
	if g.Query != "" {
		c.Request.Query = &g.Query
	}
	if len(g.Headers) > 0 {
		c.Request.Header = g.headers(key)
	}
	c.Lasts, c.Outcome = g.Duration, guard.Outcome{Status: 200}
	d.watch.arrived(c, d.engine.Now())
	d.engine.Arrive(&c.Attempt)
}

// headers returns the headers of a request of a key.
func (g *group) headers(key int64) headgate.Values {
	if !g.names {
		return g.Headers
	}
	named := make(Headers, len(g.Headers))
	for i, h := range g.Headers {
		named[i] = Header{h.Name, strings.ReplaceAll(h.Value, keyWord, g.Name+"-"+strconv.FormatInt(key, 10))}
	}
	return named
}

// take returns a call that is not in use.
func (d *driver) take() *call {
	if n := len(d.free); n > 0 {
		c := d.free[n-1]
		d.free = d.free[:n-1]
		return c
	}
	c := new(call)
	c.Decided = func(*engine.Attempt) { d.decided(c) }
	c.Ended = func(*engine.Attempt) { d.free = append(d.free, c) }
	return c
}

// decided follows the verdict on a call.
func (d *driver) decided(c *call) {
	d.watch.decided(c, d.engine.Now())
	switch {
	case c.Verdict == headgate.Allow && d.service != nil:
		c.Lasts = engine.Open
		c.job = d.Service.draw(d.random)
		d.service.Run(&c.job, func() { d.engine.End(&c.Attempt) })
	case c.Verdict == headgate.Deny && c.group.Traffic == retries && c.tries < mostTries:
		d.retry(c)
	}
}

// mostTries bounds the further attempts of a client that retries.
const mostTries = 4

// retry plans the next attempt of a refused client: after Retry-After, in whole seconds as over HTTP.
func (d *driver) retry(c *call) {
	closest := c.Answer.Closest()
	if closest == nil || closest.Final() {
		return
	}
	wait := time.Second
	if after := closest.Decision.RetryAfter; after > 0 {
		wait = time.Duration(fields.RetrySeconds(min(after, c.Answer.RetryAfterMax()))) * time.Second
	}
	if c.group.Jitter {
		wait += time.Duration(d.random.Float64() * float64(wait) / 2)
	}
	at := d.engine.Now().Add(wait)
	if at >= d.start.Add(d.Length) {
		return
	}
	g, key, cost, tries := c.group, c.key-c.group.firstKey, c.cost, c.tries+1
	d.engine.Time().At(at, func() { d.send(g, key, cost, tries) })
}
