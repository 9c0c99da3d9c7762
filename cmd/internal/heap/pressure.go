package heap

import (
	"cmp"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/internal/sorting"
)

// Above High percent of PressureConfig.Most, connections are closed until about low percent are in use, both beside Fixed. The rest is
// for garbage, and for what arrives until the next collection.
const (
	High = 60
	low  = 40
	// growth is how much the heap may grow after a collection before new connections await the next one.
	growth = 10
	// looks is how often Arrived looks at the heap while the estimate of what arrives grows by growth. A look takes microseconds, and the
	// estimate can be several times too low.
	looks = 8
	// acceptsPerCheck is how many connections are accepted between two looks at the heap, which take microseconds.
	acceptsPerCheck = 8
)

// Closable is a connection of a client. Its methods do not block.
type Closable interface {
	// Trusted reports whether the connection has the requests of many users. Such connections are the last to be closed.
	Trusted() bool
	// Abort closes the connection, and discards unsent data.
	Abort()
}

// Costs estimates what the open connections take, in bytes. The numbers only order connections and say how many are closed: the
// collector measures the memory itself.
type Costs struct {
	open           []costly
	leaving, total int64
}

// costly is a connection with its estimated cost. Those with more bytes beyond spared are closed first.
type costly struct {
	conn          Closable
	bytes, spared int64
	trusted       bool
}

// Add adds a connection. spared is the part of bytes that any client needs to be served at all. An aborted connection frees its memory
// soon.
func (c *Costs) Add(conn Closable, bytes, spared int64, aborted bool) {
	c.total += bytes
	if aborted {
		c.leaving += bytes
		return
	}
	c.open = append(c.open, costly{conn: conn, bytes: bytes, spared: spared})
}

// PressureConfig configures NewPressure.
type PressureConfig struct {
	// Most is what the heap and the stacks of the process may take, in bytes. With 0, no connection is closed.
	Most int64
	// Fixed is the part of Most for tables on the heap, which no client makes larger.
	Fixed int64
	// Least is the least sum of Costs at which connections are closed: with less, something else takes the memory.
	Least int64
	// Costs adds all connections.
	Costs func(*Costs)
	// Settle says that Costs has no aborted connections: before the next look, they have time to end.
	Settle bool
	// Closed counts the closed connections.
	Closed *atomic.Uint64
	// Advice is what an operator can do.
	Advice string
	Log    *slog.Logger
}

// Bounds are those of a PressureConfig, which a reload can change.
type Bounds struct{ Most, Fixed, Least int64 }

// Pressure closes the costliest connections when the live heap is near its bound. Without it, the bound of memory would be the
// most that each connection and each request can take, times their numbers. It is safe for concurrent use.
type Pressure struct {
	PressureConfig

	measured chan struct{}
	stopped  chan struct{}
	once     sync.Once
	lines    loglimit.Limiter
	// pressed is set while connections are closed: new ones wait.
	pressed  atomic.Bool
	changed  atomic.Pointer[Bounds] // nil until Rebound
	live     atomic.Int64           // of the last collection, in bytes
	accepted atomic.Uint64
	pending  atomic.Int64 // of the last look at the heap by Arrived, in bytes
	checking sync.Mutex   // held by check during a collection
	pressing sync.Mutex   // held while pressed or unread changes
	unread   gate         // shut while connections are closed, and while check measures
}

// NewPressure follows the collector until Stop, if c has a bound.
func NewPressure(c PressureConfig) *Pressure {
	p := &Pressure{PressureConfig: c, measured: make(chan struct{}, 1), stopped: make(chan struct{})}
	if p.Most > 0 {
		p.watch()
	}
	return p
}

// Rebound changes the bounds. A Pressure without a bound stays without one.
func (p *Pressure) Rebound(b Bounds) {
	if p.Most > 0 {
		p.changed.Store(&b)
	}
}

// Bounds returns the bounds in force.
func (p *Pressure) Bounds() Bounds {
	if b := p.changed.Load(); b != nil {
		return *b
	}
	return Bounds{p.Most, p.Fixed, p.Least}
}

// watch starts to follow the collector, until Stop.
func (p *Pressure) watch() {
	AfterCollection(func() (goOn bool) {
		select {
		case <-p.stopped:
			return false
		default:
		}
		p.notify()
		return true
	})
	go func() {
		for {
			select {
			case <-p.stopped:
				return
			case <-p.measured:
				objects, stacks := Live()
				closed := p.Relieve(objects + stacks)
				if closed == 0 && !p.Pressed() {
					continue
				}
				if closed == 0 || p.Settle {
					p.awaitEnds()
				}
				runtime.GC() // The closed connections must not wait for the next collection, which may be late.
			}
		}
	}()
}

// notify has the last collection's result looked at.
func (p *Pressure) notify() {
	select {
	case p.measured <- struct{}{}:
	default: // It will be looked at.
	}
}

// awaitEnds gives closed connections the time to end: until then, a collection frees little.
func (p *Pressure) awaitEnds() {
	const most = 50 * time.Millisecond
	select {
	case <-p.stopped:
	case <-time.After(most):
	}
}

// Await delays a new connection while connections are closed, and before that while a collection measures a heap that has grown. With
// new connections meanwhile, a collection on a busy machine would measure too late. The goroutines that accept connections call it.
func (p *Pressure) Await() {
	const most, step = 20, 5 * time.Millisecond
	if p.accepted.Add(1)%acceptsPerCheck == 0 && p.Most > 0 && p.hasGrown(InUse()) {
		p.check()
	}
	for n := 0; n < most && p.pressed.Load(); n++ {
		<-time.After(step)
	}
}

// Arrived looks at the heap when requests that still arrive take much more than at the last look. pending is the estimate of what they
// take, in bytes. Without it, connections that were accepted while the heap was small would fill the heap before the next collection.
func (p *Pressure) Arrived(pending int64) {
	if p.Most <= 0 {
		return
	}
	last := p.pending.Load()
	if pending > last && pending < last+(p.at(growth)-p.at(0))/looks {
		return
	}
	if p.pending.CompareAndSwap(last, pending) && pending > last && p.hasGrown(InUse()) {
		p.check()
	}
}

// AwaitUnread blocks a connection whose request still arrives, while connections are closed and while a heap that has grown is measured:
// the rest of the request would fill the heap meanwhile. It returns when goesOn reports true, which it calls after connections were closed,
// and after most at the latest. It returns what is left of most.
func (p *Pressure) AwaitUnread(most time.Duration, goesOn func() bool) (left time.Duration) {
	return p.unread.wait(most, goesOn)
}

// press says whether connections are closed.
func (p *Pressure) press(pressed bool) {
	p.pressing.Lock()
	defer p.pressing.Unlock()
	p.pressed.Store(pressed)
	p.unread.set(pressed)
}

// check measures a heap that has grown.
func (p *Pressure) check() {
	p.checking.Lock()
	defer p.checking.Unlock()
	if !p.hasGrown(InUse()) {
		return // Another goroutine has measured it meanwhile.
	}
	p.unread.set(true)
	defer p.measuredNow()
	runtime.GC()
	objects, stacks := Live()
	p.live.Store(objects + stacks)
	if p.isOver(objects + stacks) {
		p.press(true)
		p.notify() // The other goroutine closes connections, and resets pressed.
	}
}

// measuredNow ends the wait for a measurement, unless connections are closed.
func (p *Pressure) measuredNow() {
	p.pressing.Lock()
	defer p.pressing.Unlock()
	p.unread.set(p.pressed.Load())
}

// hasGrown reports whether a heap with these bytes in use may be above High, and is by growth larger than the last live one.
func (p *Pressure) hasGrown(inUse int64) bool {
	return p.isOver(inUse) && inUse > p.live.Load()+p.at(growth)-p.at(0)
}

func (p *Pressure) isOver(bytes int64) bool { return bytes > p.at(High) }

// at returns the live heap of which Fixed, and a percentage of the rest of Most, are in use. A tenth of Most is beside Fixed in any
// case: with larger tables, connections would never be closed.
func (p *Pressure) at(percent int64) int64 {
	b := p.Bounds()
	fixed := min(b.Fixed, b.Most/10*9)
	return fixed + (b.Most-fixed)/100*percent
}

// Pressed reports whether connections are closed now.
func (p *Pressure) Pressed() bool { return p.pressed.Load() }

// Stop ends the closing of connections.
func (p *Pressure) Stop() {
	p.once.Do(func() {
		close(p.stopped)
		p.press(false)
	})
}

// Relieve closes the costliest connections if live bytes are too many, and returns their number. Connections that cost only what a
// client needs are closed after those, and trusted ones are the last.
func (p *Pressure) Relieve(live int64) (closed int) {
	p.live.Store(live)
	p.press(p.isOver(live))
	if !p.pressed.Load() {
		return 0
	}
	var costs Costs
	p.Costs(&costs)
	bounds := p.Bounds()
	if costs.total < bounds.Least {
		p.press(false)
		return 0
	}
	all := costs.open
	for i := range all {
		all[i].trusted = all[i].conn.Trusted()
	}
	sorting.Func(all, func(a, b costly) int {
		if a.trusted != b.trusted {
			if a.trusted {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.bytes-b.spared, a.bytes-a.spared), cmp.Compare(a.spared, b.spared))
	})
	for excess := live - p.at(low) - costs.leaving; excess > 0 && closed < len(all); closed++ {
		excess -= all[closed].bytes
		all[closed].conn.Abort()
	}
	p.unread.wake() // Closed connections end at once.
	if closed == 0 {
		return 0
	}
	p.Closed.Add(uint64(closed))
	if _, log := p.lines.Event(time.Now()); log {
		p.Log.Warn("connections were closed because memory is near its bound",
			"closed", closed, "open", len(all), "heap", live, "bound", bounds.Most, "advice", p.Advice)
	}
	return closed
}
