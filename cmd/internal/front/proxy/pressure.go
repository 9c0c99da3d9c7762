package proxy

import (
	"maps"
	"slices"
	"sync"

	"github.com/headgate/headgate/cmd/internal/heap"
)

// What a connection costs, in bytes. The numbers only order connections and say how many are closed: the collector measures the
// memory itself.
const (
	plainCost       = 8 << 10
	multiplexedCost = 64 << 10
	tlsCost         = 32 << 10
	placeCost       = 64 << 10
	// arrivingHTTP1 and arrivingHTTP2 are what each byte of a header costs while the header arrives.
	arrivingHTTP1 = 24
	arrivingHTTP2 = 4
	mostArriving  = 64 << 10
)

// pressure has the connections of a Server. While connections are closed, clients with a request in flight get no other.
type pressure struct {
	*heap.Pressure

	server *Server
	mu     sync.Mutex
	conns  map[*clientConn]struct{} // guarded by mu
}

// newPressure follows the collector if c has a bound.
func newPressure(s *Server, c *ServerConfig) *pressure {
	p := &pressure{server: s, conns: map[*clientConn]struct{}{}}
	p.Pressure = heap.NewPressure(heap.PressureConfig{
		Most: c.Memory.Most, Fixed: c.Memory.Fixed, Least: c.Memory.Least, Costs: p.costs,
		Closed: &s.proxy.traffic.ClosedForMemory, Log: c.Log,
		Advice: "raise proxy.max_traffic_memory, or lower proxy.max_connections and proxy.max_requests",
	})
	s.places.pressed = p.Pressed
	return p
}

// Rebound changes the bounds of memory.
func (s *Server) Rebound(b heap.Bounds) { s.pressure.Rebound(b) }

// Bounds returns the bounds of memory in force.
func (s *Server) Bounds() heap.Bounds { return s.pressure.Bounds() }

func (p *pressure) add(c *clientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
}

func (p *pressure) remove(c *clientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// all returns the connections.
func (p *pressure) all() []*clientConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.conns))
}

// costs adds what each connection takes.
func (p *pressure) costs(to *heap.Costs) {
	places := p.server.places
	places.mu.Lock()
	defer places.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		base, arriving := int64(plainCost), arrivingHTTP1*c.head.Load()
		if c.multiplexed.Load() {
			base, arriving = multiplexedCost, arrivingHTTP2*min(c.sinceRequest.Load(), mostArriving)
		}
		if p.server.tls != nil {
			base += tlsCost
		}
		cost, spared := base+arriving, int64(0)
		for at := c.firstPlace; at != nil; at = at.nextOf {
			cost += max(1, at.weight) * placeCost
			if at.since.Load() == reading {
				spared = base + placeCost // The client awaits an answer: it is not what fills the memory.
			}
		}
		to.Add(c, cost, spared, c.aborted.Load())
	}
}
