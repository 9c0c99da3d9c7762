package app

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/internal/config"
)

// watchMemory starts to close connections of all listeners near the bound of memory.
func (d *decisionServer) watchMemory() {
	b := d.bounds(d.instance.options.Config)
	d.memory.Store(heap.NewPressure(heap.PressureConfig{
		Most: b.Most, Fixed: b.Fixed, Least: b.Least, Settle: true,
		Closed: &d.closedForMemory, Log: d.instance.options.Log,
		Advice: "raise server.max_traffic_memory, or lower max_connections of the listeners of server",
		Costs: func(to *heap.Costs) {
			d.grpc.Costs(to)
			d.resp.costs(to)
			d.http.framed.costs(to)
		},
	}))
}

// bounds returns the bounds of memory. c has the tables in force.
func (d *decisionServer) bounds(c *config.Config) heap.Bounds {
	most, traffic := serverPressureBounds(c, heapLimit(c, c.ServerMemoryBound(), MachineMemory()))
	return heap.Bounds{Most: most, Fixed: fixedHeap(c), Least: traffic / leastTrafficShare}
}

// rebound takes the local cache of a reload over into the bounds of memory.
func (d *decisionServer) rebound(next *config.Config) {
	c := d.instance.options.reloadedTables(next)
	if p := d.memory.Load(); p != nil {
		p.Rebound(d.bounds(c))
	}
}

// leastTrafficShare is the part of the bound that connections take at least when they are closed. With less, receipts and leases of
// other clients take the memory.
const leastTrafficShare = 4

// pressed makes a listener wait for memory before it accepts a connection.
func (d *decisionServer) pressed(l net.Listener) net.Listener { return &pressedListener{l, d} }

type pressedListener struct {
	net.Listener

	server *decisionServer
}

// Accept implements net.Listener.
func (l *pressedListener) Accept() (net.Conn, error) {
	if p := l.server.memory.Load(); p != nil {
		p.Await()
	}
	return l.Listener.Accept() //nolint:wrapcheck // because the servers compare the error.
}

// What a connection of a framedListener takes, in bytes: between requests, for each byte of a header (net/http takes up to 24), and for
// each byte of a body.
const (
	framedCost = 16 << 10
	headCost   = 24
	bodyCost   = 4
)

// framedConns are the open connections of a framedListener.
type framedConns struct {
	mu  sync.Mutex
	all map[*framedConn]struct{} // guarded by mu
}

func (f *framedConns) add(c *framedConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*framedConn]struct{}{}
	}
	f.all[c] = struct{}{}
}

func (f *framedConns) remove(c *framedConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, c)
}

// costs adds what each connection takes. l is nil when the listener is off.
func (l *framedListener) costs(to *heap.Costs) {
	if l == nil {
		return
	}
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	for c := range l.conns.all {
		to.Add(c, framedCost+headCost*c.head.Load()+bodyCost*c.body.Load(), 0, false)
	}
}

// count counts bytes of a request. The header of a request that is in flight has arrived.
func (c *framedConn) count(n int) {
	if c.active.Load() {
		c.body.Add(int64(n))
	} else {
		c.head.Add(int64(n))
	}
}

// changed follows the states of the connection in net/http.
func (c *framedConn) changed(state http.ConnState) {
	switch state {
	case http.StateActive:
		c.active.Store(true)
	case http.StateIdle:
		c.active.Store(false)
		c.head.Store(0)
		c.body.Store(0)
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

// Trusted implements heap.Closable.
func (c *framedConn) Trusted() bool {
	if c.from.trusts == nil {
		return false
	}
	var peer netip.Addr
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		peer = at.AddrPort().Addr().Unmap()
	}
	return c.from.trusts(peer)
}

// Abort implements heap.Closable. It closes the connection below TLS, and discards unsent data.
func (c *framedConn) Abort() {
	if able, ok := c.listened.(interface{ Abort() }); ok {
		able.Abort()
	}
}

// Close implements net.Conn.
func (c *framedConn) Close() error {
	c.from.conns.remove(c)
	return c.Conn.Close() //nolint:wrapcheck // because net/http compares the error.
}

// traffic of a framedConn.
type framedTraffic struct {
	head, body atomic.Int64 // bytes of the request that arrives or is in flight
	active     atomic.Bool  // a request is in flight
}

// fixedHeap returns the bytes of tables on the heap, which no client makes larger.
func fixedHeap(c *config.Config) int64 {
	fixed, _ := tables(c)
	if c.Server != nil {
		fixed += c.Server.RateLimitService.LocalCache
	}
	return fixed
}
