package heap

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// TestNewConnectionsAwaitCollection: a heap that has grown beyond High since the last collection is measured before the next
// connection, but not for each connection.
func TestNewConnectionsAwaitCollection(t *testing.T) {
	p := NewPressure(PressureConfig{})
	p.Most = 100 << 20
	for _, c := range []struct {
		live, inUse int64
		want        bool
	}{
		{20 << 20, 59 << 20, false},
		{20 << 20, 61 << 20, true},
		{55 << 20, 64 << 20, false},
		{55 << 20, 66 << 20, true},
	} {
		p.live.Store(c.live)
		if p.hasGrown(c.inUse) != c.want {
			t.Errorf("%d bytes were live and %d are in use: want %t", c.live, c.inUse, c.want)
		}
	}
	p.Most = 64 << 10 // The test itself takes more.
	p.live.Store(0)
	for range acceptsPerCheck {
		p.Await()
	}
	if !p.pressed.Load() || p.live.Load() == 0 {
		t.Error("the heap was not measured")
	}
}

// TestArrivingRequestsAreMeasured: what arrives is a reason to measure the heap, before a collection or a new connection is.
func TestArrivingRequestsAreMeasured(t *testing.T) {
	p := NewPressure(PressureConfig{})
	p.Arrived(1 << 30)
	if p.Pressed() {
		t.Error("a heap without a bound is pressed")
	}
	p.Most = 64 << 10 // The test itself takes more.
	step := (p.at(growth) - p.at(0)) / looks
	if p.Arrived(step - 1); p.Pressed() {
		t.Error("the heap was measured for less than a step")
	}
	if p.Arrived(step); !p.Pressed() || p.live.Load() == 0 {
		t.Error("the heap was not measured after a step")
	}
	p.press(false)
	p.live.Store(0)
	p.Arrived(0)
	if p.Arrived(step - 1); p.Pressed() {
		t.Error("an estimate that has fallen counts from where it was")
	}
	if p.Arrived(step); !p.Pressed() {
		t.Error("the heap was not measured after a further step")
	}
}

// TestUnreadRequestsWait: while connections are closed, others whose request arrives wait until there is memory, and for the given time at
// the longest. Closed ones go on at once.
func TestUnreadRequestsWait(t *testing.T) {
	const long = time.Minute
	never := func() bool { return false }
	p := NewPressure(PressureConfig{Closed: new(atomic.Uint64), Log: slog.New(slog.DiscardHandler), Costs: func(*Costs) {}})
	p.Most = 1000
	if left := p.AwaitUnread(long, never); left != long {
		t.Errorf("without pressure %v are left, want all", left)
	}
	p.Relieve(900)
	if left := p.AwaitUnread(time.Millisecond, never); left != 0 {
		t.Errorf("a wait that times out leaves %v", left)
	}
	if left := p.AwaitUnread(0, never); left != 0 {
		t.Errorf("a wait without time leaves %v", left)
	}
	var closed atomic.Bool
	left := make(chan time.Duration, 2)
	go func() { left <- p.AwaitUnread(long, closed.Load) }()
	closed.Store(true)
	p.Relieve(900)
	if got := <-left; got <= 0 {
		t.Error("a closed connection waits")
	}
	go func() { left <- p.AwaitUnread(long, never) }()
	p.Relieve(900)
	p.Relieve(500)
	if got := <-left; got <= 0 {
		t.Error("a connection waits although there is memory")
	}
	p.Relieve(900)
	go func() { left <- p.AwaitUnread(long, never) }()
	p.Stop()
	if got := <-left; got <= 0 {
		t.Error("a connection waits after the end")
	}
}

// held is a connection that takes bytes.
type held struct {
	bytes           int64
	trusted, closed bool
}

func (h *held) Trusted() bool { return h.trusted }
func (h *held) Abort()        { h.closed = true }

// TestFixedTables: tables on the heap are no reason to close connections, and the excess beside them is all that is closed. Trusted
// connections are the last.
func TestFixedTables(t *testing.T) {
	const mib = 1 << 20
	gateway, large, small := &held{bytes: 40 * mib, trusted: true}, &held{bytes: 9 * mib}, &held{bytes: 2 * mib}
	all := []*held{gateway, large, small}
	var closed atomic.Uint64
	p := NewPressure(PressureConfig{
		Fixed: 900 * mib, Least: 10 * mib, Closed: &closed, Log: slog.New(slog.DiscardHandler), Advice: "none",
		Costs: func(to *Costs) {
			for _, h := range all {
				to.Add(h, h.bytes, 0, h.closed)
			}
		},
	})
	p.Most = 1000 * mib // 60 percent of the rest are 960 MiB, and 40 percent 940.
	for _, c := range []struct {
		live int64
		want int
	}{{959 * mib, 0}, {961 * mib, 3}} {
		if n := p.Relieve(c.live); n != c.want || p.Pressed() != (c.want > 0) {
			t.Errorf("with %d MiB, %d connections were closed, want %d", c.live/mib, n, c.want)
		}
	}
	all = []*held{{bytes: 40 * mib, trusted: true}, {bytes: 30 * mib}, {bytes: 2 * mib}}
	if n := p.Relieve(961 * mib); n != 1 || !all[1].closed || closed.Load() != 4 {
		t.Errorf("%d connections were closed, want the large one alone", n)
	}
	if p.Relieve(961*mib) != 0 || !p.Pressed() {
		t.Error("a connection was closed although another one ends")
	}
	all = nil
	if p.Relieve(961*mib) != 0 || p.Pressed() {
		t.Error("without connections, something else takes the memory")
	}
}

// TestBoundsChange: a reload changes the bounds, and tables above the bound do not stop the closing of connections.
func TestBoundsChange(t *testing.T) {
	const mib = 1 << 20
	var closed atomic.Uint64
	client := &held{bytes: 100 * mib}
	p := NewPressure(PressureConfig{
		Closed: &closed, Log: slog.New(slog.DiscardHandler), Costs: func(to *Costs) { to.Add(client, client.bytes, 0, client.closed) },
	})
	p.Rebound(Bounds{Most: 1})
	if p.Bounds().Most != 0 {
		t.Error("a reload bounds what had no bound")
	}
	p.Most = 1000 * mib
	for _, c := range []struct {
		bounds Bounds
		live   int64
		want   bool
	}{
		{p.Bounds(), 590 * mib, false},
		{Bounds{Most: 600 * mib, Fixed: 512 * mib}, 560 * mib, false}, // 60 percent of the rest are 564.8 MiB.
		{Bounds{Most: 600 * mib, Fixed: 512 * mib}, 570 * mib, true},
		{Bounds{Most: 400 * mib, Fixed: 512 * mib}, 399 * mib, true},
		{Bounds{Most: 400 * mib, Fixed: 512 * mib, Least: 101 * mib}, 399 * mib, false},
	} {
		p.Rebound(c.bounds)
		client.closed = false
		if p.Relieve(c.live); client.closed != c.want || p.Pressed() != c.want {
			t.Errorf("%+v with %d bytes: closed %t, want %t", c.bounds, c.live, client.closed, c.want)
		}
	}
}
