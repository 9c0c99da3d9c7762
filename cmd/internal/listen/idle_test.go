package listen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/headgate/headgate/cmd/internal/oldest"
	"github.com/headgate/headgate/internal/testkit/wallclock"
)

// user has the methods with which a server marks a connection.
type user interface {
	net.Conn
	Idle()
	Busy()
	Abort()
}

// idleAt marks a connection idle, beginning now.
func idleAt(t *testing.T, c net.Conn) user {
	t.Helper()
	u, ok := c.(user)
	if !ok {
		t.Fatalf("%T has no method Idle", c)
	}
	u.Busy()
	u.Idle()
	return u
}

// TestNewcomerTakesTheLongestIdle checks that at the bound a new connection replaces the one
// that has been idle longest. It never replaces a connection with a request in flight, or
// one that has just sent bytes.
func TestNewcomerTakesTheLongestIdle(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 4})
	conns := accepted(l)
	var clients []net.Conn
	var served []user
	for range 4 {
		clients = append(clients, dial(t, l.Addr()))
		served = append(served, idleAt(t, <-conns))
	}
	served[0].Busy()
	fmt.Fprint(clients[1], "G") // The connection idle longest sends a byte and becomes the newest.
	if _, err := served[1].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, oldest := range []int{2, 3, 1} {
		dial(t, l.Addr())
		newest, ok := (<-conns).(user)
		if !ok {
			t.Fatal("a connection has no method Busy")
		}
		newest.Busy()
		if _, err := clients[oldest].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("connection %d, which was idle longest, read %v, want a closed connection", oldest, err)
		}
	}
	dial(t, l.Addr())
	select {
	case <-conns:
		t.Fatal("a new connection was served although every connection is busy")
	case <-time.After(2 * recheck):
	}
	served[0].Idle()
	<-conns
	if got := l.Stats(); got.ClosedIdle != 4 || got.Open != 4 {
		t.Errorf("got %+v, want 4 closed and 4 open", got)
	}
}

// TestNewcomerSparesWhatHasArrived checks that a connection stays open if its next request
// has arrived but is unread.
func TestNewcomerSparesWhatHasArrived(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 1})
	conns := accepted(l)
	client := dial(t, l.Addr())
	served := idleAt(t, <-conns)
	fmt.Fprint(client, "G")
	waits(t, "the byte", func() bool { return pending(served.(*counted).Conn) })
	for range 3 {
		if l.makeRoom(time.Now()) {
			t.Fatal("the connection was closed, want it open")
		}
		<-time.After(recheck)
	}
	if _, err := served.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if pending(served.(*counted).Conn) {
		t.Error("pending is true for a byte that was already read")
	}
}

// TestNewcomerAmongSilentClients checks that clients that connect and send nothing do not
// keep other clients out.
func TestNewcomerAmongSilentClients(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 2})
	conns := accepted(l)
	for range 8 {
		dial(t, l.Addr())
	}
	for range 8 {
		select {
		case <-conns:
		case <-time.After(10 * time.Second):
			t.Fatalf("a new connection was not served: %+v", l.Stats())
		}
	}
}

// TestNewcomerAfterTheClockIsSet checks that the connection idle longest gives way, whatever the wall clock says.
func TestNewcomerAfterTheClockIsSet(t *testing.T) {
	for _, change := range []time.Duration{-time.Hour, time.Hour} {
		l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 1})
		conns := accepted(l)
		client := dial(t, l.Addr())
		served := (<-conns).(*counted)
		now := time.Now()
		served.since.Store(l.clock.At(now)) // A new connection has arrival to send its first bytes.
		if l.makeRoom(wallclock.Set(now.Add(arrival/2), change)) {
			t.Errorf("the clock was set by %v: the connection was closed before %v", change, arrival)
		}
		if !l.makeRoom(wallclock.Set(now.Add(2*arrival), change)) {
			t.Errorf("the clock was set by %v: the connection was not closed after %v", change, arrival)
			continue
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the clock was set by %v: the client read %v, want a closed connection", change, err)
		}
	}
}

// TestNewcomerWhileABodyIsAwaited checks that a connection whose request waits for its body gives way, but not
// before the first bytes had time to arrive, and not while the request is answered. A body that arrives byte by
// byte changes nothing.
func TestNewcomerWhileABodyIsAwaited(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 1})
	conns := accepted(l)
	client := dial(t, l.Addr())
	served := (<-conns).(*counted)
	served.Busy()
	begun := time.Now()
	for range 3 { // Each byte of a body ends a read.
		served.Await(begun)
		if l.makeRoom(begun.Add(arrival - 1)) {
			t.Fatal("the connection was closed before its body had time to arrive")
		}
		served.Busy()
		if l.makeRoom(begun.Add(time.Minute)) {
			t.Fatal("the connection was closed while its request was answered")
		}
	}
	served.Await(begun)
	if !l.makeRoom(begun.Add(2 * time.Minute)) {
		t.Fatal("the connection was not closed although its body is late")
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client read %v, want a closed connection", err)
	}
}

// TestBusyRacesWithNewcomers checks that a connection is either closed as idle or used,
// never both.
func TestBusyRacesWithNewcomers(t *testing.T) {
	for range 200 {
		l := &Listener{conns: make(map[*counted]struct{}), clock: oldest.NewClock(time.Now())}
		near, far := net.Pipe()
		c := &counted{Conn: near, from: l}
		c.since.Store(l.clock.At(time.Now()))
		l.conns[c] = struct{}{}
		var both sync.WaitGroup
		var closed bool
		both.Go(func() { closed = l.makeRoom(time.Now().Add(time.Hour)) })
		both.Go(c.Busy)
		both.Wait()
		if used := c.since.Load() == busy; used == closed {
			t.Fatalf("used: %v, closed: %v, want exactly one", used, closed)
		}
		near.Close()
		far.Close()
	}
}

// TestPerAddress checks that connections beyond an address's bound are closed. Networks,
// exempt addresses and addresses in a PROXY header count separately.
func TestPerAddress(t *testing.T) {
	l := listener(t, Config{
		Address: "127.0.0.1:0", PerAddress: 2, ProxyProtocol: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Exempt: func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.9") },
	})
	conns := accepted(l)
	from := func(address string) (client, server net.Conn, err error) {
		client = dial(t, l.Addr())
		header := proxyproto.HeaderProxyFromAddrs(1, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}, &net.TCPAddr{IP: net.ParseIP(address), Port: 2})
		if _, err := header.WriteTo(client); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(client, "x")
		server = <-conns
		_, err = server.Read(make([]byte, 1))
		return client, server, err
	}
	first := make(map[string]net.Conn)
	for i, c := range []struct {
		address string
		served  bool
	}{
		{"192.0.2.1", true},
		{"192.0.2.1", true},
		{"192.0.2.1", false},
		{"192.0.2.2", true},
		{"2001:db8::1", true},
		{"2001:db8::ffff", true},
		{"2001:db8::2", false},
		{"2001:db8:0:1::1", true},
		{"192.0.2.9", true},
		{"192.0.2.9", true},
		{"192.0.2.9", true},
	} {
		client, server, err := from(c.address)
		if (err == nil) != c.served {
			t.Errorf("connection %d from %s: got %v, want it served: %v", i, c.address, err, c.served)
		}
		if c.served {
			first[c.address] = server
		} else if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d from %s is open, want it closed", i, c.address)
		}
	}
	first["192.0.2.1"].Close()
	if _, _, err := from("192.0.2.1"); err != nil {
		t.Errorf("new connection after one was closed: %v", err)
	}
	if got := l.Stats(); got.TooMany != 2 {
		t.Errorf("got %+v, want TooMany = 2", got)
	}
}

// TestPerAddressOfPeers checks that without the PROXY protocol the peer's address counts,
// and that closed connections leave no entry.
func TestPerAddressOfPeers(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", PerAddress: 1})
	conns := accepted(l)
	dial(t, l.Addr())
	only := <-conns
	if _, err := dial(t, l.Addr()).Read(make([]byte, 1)); err == nil {
		t.Error("a second connection from one address was served")
	}
	only.Close()
	waits(t, "the entries of closed connections to be removed", func() bool { // The client sees the end before forget runs.
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.addresses)+len(l.conns) == 0
	})
}

// TestRenewedDeadline: a write keeps the deadline of the one before while 7/8 of WriteTimeout are left. Other deadlines end it.
func TestRenewedDeadline(t *testing.T) {
	const whole = 8 * time.Second
	at := time.Now()
	inner := new(deadlines)
	c := &counted{Conn: inner, from: &Listener{writing: whole, opened: at}}
	for _, step := range []struct {
		do   string
		at   time.Duration
		want time.Duration // the deadline after it
	}{
		{"write", 0, 8 * time.Second},
		{"write", 999 * time.Millisecond, 8 * time.Second},
		{"end", 999 * time.Millisecond, 8 * time.Second},
		{"write", time.Second, 9 * time.Second},
		{"write", time.Hour, time.Hour + whole},
		{"set", time.Hour, time.Hour + time.Second},
		{"write", time.Hour, time.Hour + whole},
		{"both", time.Hour, time.Hour + time.Second},
		{"write", time.Hour, time.Hour + whole},
	} {
		now := at.Add(step.at)
		switch step.do {
		case "write":
			c.renewDeadline(now)
		case "end":
			_ = c.SetWriteDeadline(time.Time{})
		case "set":
			_ = c.SetWriteDeadline(now.Add(time.Second))
		case "both":
			_ = c.SetDeadline(now.Add(time.Second))
		}
		if got := inner.write.Sub(at); got != step.want {
			t.Fatalf("%s at %v: the deadline is at %v, want %v", step.do, step.at, got, step.want)
		}
	}
}

// deadlines is a connection that notes its write deadline.
type deadlines struct {
	net.Conn

	write time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

func (d *deadlines) SetDeadline(t time.Time) error { d.write = t; return nil }

// TestWriteTimeout checks that a write times out if its peer does not read, and continues as
// long as the peer reads.
func TestWriteTimeout(t *testing.T) {
	const length = 16 << 20
	l := listener(t, Config{Address: "127.0.0.1:0", WriteTimeout: time.Second})
	conns := accepted(l)
	dial(t, l.Addr()) // The client reads nothing.
	if n, err := (<-conns).Write(make([]byte, length)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write to a peer that does not read returned %d, %v", n, err)
	}
	waits(t, "the connection to be closed", func() bool { return l.Stats().Open == 0 })
	reader := dial(t, l.Addr())
	written := make(chan error, 1)
	served := <-conns
	go func() { _, err := served.Write(make([]byte, length)); written <- err }()
	total := 0
	for buf := make([]byte, 1<<20); total < length; <-time.After(100 * time.Millisecond) {
		n, err := io.ReadFull(reader, buf)
		if total += n; err != nil {
			t.Fatalf("write failed after %d bytes: %v", total, err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
