package proxy

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/internal/loglimit"
)

// What a connection costs, in bytes. The numbers only order connections and say how many are closed: the collector measures the
// memory itself.
const (
	plainCost       = 8 << 10
	multiplexedCost = 64 << 10
	placeCost       = 64 << 10
	// arrivingHTTP1 and arrivingHTTP2 are what each byte of a header costs while the header arrives.
	arrivingHTTP1 = 24
	arrivingHTTP2 = 4
	mostArriving  = 64 << 10
)

// Above heapHigh percent of MaxHeap, connections are closed until about heapLow percent are in use. The rest is for garbage, and for what
// arrives until the next collection.
const (
	heapHigh = 60
	heapLow  = 40
	// heapGrowth is how much the heap may grow after a collection before new connections await the next one.
	heapGrowth = 10
	// acceptsPerCheck is how many connections are accepted between two looks at the heap, which take microseconds.
	acceptsPerCheck = 8
)

// pressure closes the costliest connections when the live heap is near its bound. Without it, the bound of memory would be the
// most that each connection and each request can take, times their numbers.
type pressure struct {
	server   *Server
	most     int64 // of the heap
	least    int64 // of the estimated costs of all connections: with less, something else takes the memory
	measured chan struct{}
	closed   chan struct{}
	once     sync.Once
	lines    loglimit.Limiter
	// pressed is set while connections are closed: new ones wait, and clients with a request in flight get no other.
	pressed  atomic.Bool
	live     atomic.Int64 // of the last collection, in bytes
	accepted uint64       // used by the goroutine that accepts

	mu    sync.Mutex
	conns map[*clientConn]struct{} // guarded by mu
}

// newPressure follows the collector if c has a bound.
func newPressure(s *Server, c *ServerConfig) *pressure {
	p := &pressure{
		server: s, most: c.MaxHeap, least: c.MaxTraffic / 2, conns: map[*clientConn]struct{}{},
		measured: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	s.places.pressed = p.pressed.Load
	if p.most > 0 {
		p.watchHeap()
	}
	return p
}

// watchHeap starts to follow the collector, until stop.
func (p *pressure) watchHeap() {
	heap.AfterCollection(func() (goOn bool) {
		select {
		case <-p.closed:
			return false
		default:
		}
		p.notify()
		return true
	})
	go func() {
		for {
			select {
			case <-p.closed:
				return
			case <-p.measured:
				objects, stacks := heap.Live()
				if p.relieve(objects+stacks) == 0 {
					if !p.pressed.Load() {
						continue
					}
					p.awaitEnds()
				}
				runtime.GC() // The closed connections must not wait for the next collection, which may be late.
			}
		}
	}()
}

// notify has the last collection's result looked at.
func (p *pressure) notify() {
	select {
	case p.measured <- struct{}{}:
	default: // It will be looked at.
	}
}

// awaitEnds gives closed connections the time to end: until then, a collection frees little.
func (p *pressure) awaitEnds() {
	const most = 50 * time.Millisecond
	select {
	case <-p.closed:
	case <-time.After(most):
	}
}

// await delays a new connection while connections are closed, and before that while a collection measures a heap that has grown. With
// new connections meanwhile, a collection on a busy machine would measure too late. Only the goroutine that accepts calls it.
func (p *pressure) await() {
	const most, step = 20, 5 * time.Millisecond
	if p.accepted++; p.most > 0 && p.accepted%acceptsPerCheck == 0 && p.hasGrown(heap.InUse()) {
		runtime.GC()
		objects, stacks := heap.Live()
		p.live.Store(objects + stacks)
		if p.isOver(objects + stacks) {
			p.pressed.Store(true)
			p.notify() // The other goroutine closes connections, and resets pressed.
		}
	}
	for n := 0; n < most && p.pressed.Load(); n++ {
		<-time.After(step)
	}
}

// hasGrown reports whether a heap with these bytes in use may be above heapHigh, and is by heapGrowth larger than the last live one.
func (p *pressure) hasGrown(inUse int64) bool {
	return p.isOver(inUse) && inUse > p.live.Load()+p.most/100*heapGrowth
}

func (p *pressure) isOver(bytes int64) bool { return bytes > p.most/100*heapHigh }

func (p *pressure) stop() { p.once.Do(func() { close(p.closed) }) }

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

// relieve closes the costliest connections if live bytes are too many, and returns their number. Connections of peers that the server
// trusts have the requests of many users and are the last.
func (p *pressure) relieve(live int64) (closed int) {
	p.live.Store(live)
	p.pressed.Store(p.isOver(live))
	if !p.pressed.Load() {
		return 0
	}
	all, leaving, total := p.costs()
	if p.pressed.Store(total >= p.least); total < p.least {
		return 0
	}
	for i := range all {
		all[i].trusted = all[i].conn.trusted()
	}
	slices.SortFunc(all, func(a, b costly) int {
		if a.trusted != b.trusted {
			if a.trusted {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.cost, a.cost)
	})
	for excess := live - p.most/100*heapLow - leaving; excess > 0 && closed < len(all); closed++ {
		excess -= all[closed].cost
		all[closed].conn.abort()
	}
	if closed == 0 {
		return 0
	}
	p.server.proxy.traffic.ClosedForMemory.Add(uint64(closed))
	if _, log := p.lines.Event(time.Now()); log {
		p.server.log.Warn("connections were closed because memory is near its bound: raise proxy.max_traffic_memory, or lower "+
			"proxy.max_connections and proxy.max_requests", "closed", closed, "open", len(all), "heap", live, "bound", p.most)
	}
	return closed
}

// costly is a connection with its estimated cost.
type costly struct {
	conn    *clientConn
	cost    int64
	trusted bool
}

// costs estimates what each open connection takes, what all aborted ones take that have not ended, and the sum.
func (p *pressure) costs() (all []costly, leaving, total int64) {
	places := p.server.places
	places.mu.Lock()
	defer places.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	all = make([]costly, 0, len(p.conns))
	for c := range p.conns {
		cost := plainCost + arrivingHTTP1*c.head.Load()
		if c.multiplexed.Load() {
			cost = multiplexedCost + arrivingHTTP2*min(c.sinceRequest.Load(), mostArriving)
		}
		for at := c.firstPlace; at != nil; at = at.nextOf {
			cost += max(1, at.weight) * placeCost
		}
		total += cost
		if c.aborted.Load() {
			leaving += cost
			continue
		}
		all = append(all, costly{conn: c, cost: cost})
	}
	return all, leaving, total
}
