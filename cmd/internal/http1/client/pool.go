package client

import (
	"slices"
	"sync"
	"time"
)

// pool has the idle connections.
type pool struct {
	most    int
	timeout time.Duration

	mu    sync.Mutex
	conns []*conn // the connection that was used last is at the end
	// timer closes the connections that are too old. It may still run when the last
	// connection was taken, because stopping it for each request costs more.
	timer   *time.Timer
	running bool
}

// get returns the connection that was used last, or nil. It closes connections that are
// too old. With check it also closes connections that the service closed or wrote to. A
// connection with a descriptor needs no check if its next use is conn.ask.
func (p *pool) get(now time.Time, check bool) *conn {
	for {
		c := p.pop()
		if c == nil || !p.tooOld(c, now) && (!check && c.raw.known() || c.quiet()) {
			return c
		}
		c.close()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.conns) - 1
	if last < 0 {
		return nil
	}
	c := p.conns[last]
	p.conns[last] = nil
	p.conns = p.conns[:last]
	return c
}

// put adds a connection. If there are too many, put closes the oldest.
func (p *pool) put(c *conn, now time.Time) {
	c.idleSince = now
	c.watch()
	if evicted := p.add(c); evicted != nil {
		evicted.close()
	}
}

func (p *pool) add(c *conn) (evicted *conn) {
	if p.most <= 0 {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) >= p.most {
		evicted = p.conns[0]
		p.conns = slices.Delete(p.conns, 0, 1)
	}
	p.conns = append(p.conns, c)
	if p.timeout > 0 && !p.running {
		p.start(p.timeout)
	}
	return evicted
}

// start starts the timer. The caller holds mu.
func (p *pool) start(after time.Duration) {
	p.running = true
	if p.timer == nil {
		p.timer = time.AfterFunc(after, func() { p.expire(time.Now()) })
		return
	}
	p.timer.Reset(after)
}

func (p *pool) tooOld(c *conn, now time.Time) bool {
	return p.timeout > 0 && now.Sub(c.idleSince) >= p.timeout
}

// expire closes the connections that are too old, and starts the timer for the others.
func (p *pool) expire(now time.Time) {
	for _, c := range p.removeOld(now) {
		c.close()
	}
}

func (p *pool) removeOld(now time.Time) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.conns) && p.tooOld(p.conns[old], now) {
		old++
	}
	removed := slices.Clone(p.conns[:old])
	p.conns = slices.Delete(p.conns, 0, old)
	if p.running = len(p.conns) > 0; p.running {
		p.start(p.conns[0].idleSince.Add(p.timeout).Sub(now))
	}
	return removed
}

func (p *pool) closeAll() {
	p.mu.Lock()
	conns := p.conns
	p.conns, p.running = nil, false
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}
