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
)

// user is what a server tells of a connection.
type user interface {
	net.Conn
	Idle()
	Busy()
	Abort()
}

// idleAt makes a connection idle, as of the time that it is called.
func idleAt(t *testing.T, c net.Conn) user {
	t.Helper()
	u, ok := c.(user)
	if !ok {
		t.Fatalf("%T cannot be said to be idle", c)
	}
	u.Busy()
	u.Idle()
	return u
}

// At the bound a newcomer takes the place of the connection that is idle longest, and
// of none that has a request in flight or has just sent something.
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
	fmt.Fprint(clients[1], "G") // The longest idle sends, and is then the newest.
	if _, err := served[1].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, oldest := range []int{2, 3, 1} {
		dial(t, l.Addr())
		newest, ok := (<-conns).(user)
		if !ok {
			t.Fatal("a connection cannot be said to be busy")
		}
		newest.Busy()
		if _, err := clients[oldest].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("connection %d, which is idle longest, reads %v", oldest, err)
		}
	}
	dial(t, l.Addr())
	select {
	case <-conns:
		t.Fatal("a newcomer is served although every connection is busy")
	case <-time.After(2 * recheck):
	}
	served[0].Idle()
	<-conns
	if got := l.Stats(); got.ClosedIdle != 4 || got.Open != 4 {
		t.Errorf("%+v, want 4 closed and 4 open", got)
	}
}

// A connection whose next request has arrived is not closed, though nobody has read it.
func TestNewcomerSparesWhatHasArrived(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 1})
	conns := accepted(l)
	client := dial(t, l.Addr())
	served := idleAt(t, <-conns)
	fmt.Fprint(client, "G")
	waits(t, "the byte", func() bool { return pending(served.(*counted).Conn) })
	for range 3 {
		if l.makeRoom(time.Now()) {
			t.Fatal("the connection is closed")
		}
		<-time.After(recheck)
	}
	if _, err := served.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if pending(served.(*counted).Conn) {
		t.Error("a byte that has been read waits")
	}
}

// Clients that connect and say nothing do not lock others out either.
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
			t.Fatalf("a newcomer is locked out: %+v", l.Stats())
		}
	}
}

// A connection is either closed as idle or used, whichever comes first.
func TestBusyRacesWithNewcomers(t *testing.T) {
	for range 200 {
		l := &Listener{conns: make(map[*counted]struct{})}
		near, far := net.Pipe()
		c := &counted{Conn: near, from: l}
		c.since.Store(time.Now().UnixNano())
		l.conns[c] = struct{}{}
		var both sync.WaitGroup
		var closed bool
		both.Go(func() { closed = l.makeRoom(time.Now().Add(time.Hour)) })
		both.Go(c.Busy)
		both.Wait()
		if used := c.since.Load() == busy; used == closed {
			t.Fatalf("used %v and closed %v", used, closed)
		}
		near.Close()
		far.Close()
	}
}

// Connections of an address beyond its bound are closed; networks, exempt addresses
// and what the PROXY protocol names are told apart.
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
			t.Errorf("connection %d, of %s: %v, want it served: %v", i, c.address, err, c.served)
		}
		if c.served {
			first[c.address] = server
		} else if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d, of %s, is open", i, c.address)
		}
	}
	first["192.0.2.1"].Close()
	if _, _, err := from("192.0.2.1"); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if got := l.Stats(); got.TooMany != 2 {
		t.Errorf("%+v, want 2 that were too many", got)
	}
}

// Without the PROXY protocol the peer counts, and nothing is remembered of those gone.
func TestPerAddressOfPeers(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", PerAddress: 1})
	conns := accepted(l)
	dial(t, l.Addr())
	only := <-conns
	if _, err := dial(t, l.Addr()).Read(make([]byte, 1)); err == nil {
		t.Error("a second connection of one address is served")
	}
	only.Close()
	waits(t, "no entry of connections that are closed to be left", func() bool { // Its end is seen before it is forgotten.
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.addresses)+len(l.conns) == 0
	})
}

// A write ends when its peer leaves it unread, and goes on for as long as the peer reads.
func TestWriteTimeout(t *testing.T) {
	const length = 16 << 20
	l := listener(t, Config{Address: "127.0.0.1:0", WriteTimeout: 300 * time.Millisecond})
	conns := accepted(l)
	dial(t, l.Addr()) // It reads nothing.
	if n, err := (<-conns).Write(make([]byte, length)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write that is not read gives %d, %v", n, err)
	}
	waits(t, "the connection to be closed", func() bool { return l.Stats().Open == 0 })
	reader := dial(t, l.Addr())
	written := make(chan error, 1)
	served := <-conns
	go func() { _, err := served.Write(make([]byte, length)); written <- err }()
	total := 0
	for buf := make([]byte, 1<<20); total < length; <-time.After(40 * time.Millisecond) {
		n, err := io.ReadFull(reader, buf)
		if total += n; err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
