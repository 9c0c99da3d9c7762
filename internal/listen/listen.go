package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/oldest"
)

const (
	// keepAliveIdle, keepAliveEvery and keepAliveProbes find a peer that is gone
	// within a minute, which is how long an idle connection is commonly kept.
	keepAliveIdle   = 30 * time.Second
	keepAliveEvery  = 10 * time.Second
	keepAliveProbes = 3
	// DefaultProxyHeaderTimeout is much for a balancer, which sends the header with
	// its first packet.
	DefaultProxyHeaderTimeout = 5 * time.Second
)

// Config says where to listen, and whom to believe about who connects.
type Config struct {
	// Address is host:port, :port, unix:/path, systemd, or systemd:NAME.
	Address string
	// MaxConnections bounds the connections that are open at once; 0 is no bound. At the
	// bound a newcomer takes the place of the connection that has been idle longest.
	MaxConnections int
	// PerAddress bounds the connections of one IPv4 address or IPv6 /64; 0 is no bound.
	// Further ones are closed. With the PROXY protocol the address is the one it names.
	PerAddress int
	// Exempt tells which addresses PerAddress does not bound; nil is none.
	Exempt func(netip.Addr) bool
	// ProxyProtocol are the balancers that begin each connection with the address of
	// their client. They must; what others send is never read as such a header.
	ProxyProtocol []netip.Prefix
	// ProxyProtocolUnix says that every peer on a unix socket is such a balancer.
	ProxyProtocolUnix bool
	// ProxyHeaderTimeout bounds how long a balancer may take to send the header; 0 is
	// DefaultProxyHeaderTimeout.
	ProxyHeaderTimeout time.Duration
	// WriteTimeout bounds how long a peer may leave a piece of an answer unread, 64 KiB
	// at most; 0 is no bound. With it, a connection whose answer waits for its peer counts as
	// idle at the bound of connections: the answer gives way to a newcomer.
	WriteTimeout time.Duration
	// Inherited has the sockets that the process was started with, for addresses that
	// begin with systemd. Listeners of one process share it; nil is a new one.
	Inherited *Inherited
}

// Listener is an open socket with its layers. It is safe for concurrent use.
type Listener struct {
	inner     net.Listener
	balancers balancers
	timeout   time.Duration
	writing   time.Duration // bounds the write of a piece; 0 is no bound
	limit     int
	places    chan struct{} // nil without a limit; one element an open connection
	closed    chan struct{}
	closing   sync.Once

	perAddress int
	exempt     func(netip.Addr) bool

	mu        sync.Mutex // guards conns, idle, addresses, and the fields of counted that say so
	conns     map[*counted]struct{}
	idle      oldest.Finder[*counted]
	addresses map[netip.Addr]int // connections of each, with PerAddress only

	open       atomic.Int64
	accepted   atomic.Uint64
	pauses     atomic.Uint64
	closedIdle atomic.Uint64
	tooMany    atomic.Uint64
}

// Open listens as c says. The error tells what is in the way, and what to do
// about it. ctx bounds the opening alone.
func Open(ctx context.Context, c Config) (*Listener, error) {
	if c.Inherited == nil {
		c.Inherited = new(Inherited)
	}
	if c.ProxyHeaderTimeout <= 0 {
		c.ProxyHeaderTimeout = DefaultProxyHeaderTimeout
	}
	inner, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		inner: inner, limit: c.MaxConnections, timeout: c.ProxyHeaderTimeout, writing: c.WriteTimeout, closed: make(chan struct{}),
		balancers:  balancers{networks: c.ProxyProtocol, unix: c.ProxyProtocolUnix},
		perAddress: c.PerAddress, exempt: c.Exempt,
		conns: make(map[*counted]struct{}), addresses: make(map[netip.Addr]int),
	}
	if l.limit > 0 {
		l.places = make(chan struct{}, l.limit)
	}
	return l, nil
}

func open(ctx context.Context, c Config) (net.Listener, error) {
	if path, found := strings.CutPrefix(c.Address, "unix:"); found {
		return openUnix(ctx, path)
	}
	if c.Address == "systemd" {
		return c.Inherited.listen("")
	}
	if name, found := strings.CutPrefix(c.Address, "systemd:"); found {
		return c.Inherited.listen(name)
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return nil, fmt.Errorf("listen: %q is no address: write host:port, :port, unix:/path or systemd", c.Address)
	}
	// Accept sets keepalive itself, for inherited sockets too.
	config := net.ListenConfig{KeepAlive: -1}
	ln, err := config.Listen(ctx, "tcp", c.Address)
	if err != nil {
		return nil, advise(err)
	}
	return ln, nil
}

// Accept gives the next connection. At the bound it closes the connection that has been
// idle longest; if none is idle it waits until one is, or is closed. It never waits for
// what a client sends: a balancer's header is read when the connection is first read or
// asked for its address.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.inner.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(inner); c != nil {
			return c, nil
		}
	}
}

// admit counts a connection, unless its address has too many.
func (l *Listener) admit(inner net.Conn) net.Conn {
	placed := l.take()
	l.accepted.Add(1)
	l.open.Add(1)
	keepAlive(inner)
	c := &counted{Conn: inner, from: l, placed: placed}
	c.since.Store(time.Now().UnixNano())
	c.arriving.Store(true)
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	peer := inner.RemoteAddr()
	if l.balancers.include(peer) {
		return newProxied(c, l.timeout)
	}
	if !l.register(c, peer) {
		_ = c.Close()
		return nil
	}
	return c
}

// keepAlive has the kernel ask after a silent peer. A connection that does not
// take the settings is closed already, which its reader will notice.
func keepAlive(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveEvery, Count: keepAliveProbes,
		})
	}
}

// take waits for a place for a connection that has been accepted. It gives false when
// the listener is closed meanwhile: the connection is served all the same, since no
// other process can have it any more.
func (l *Listener) take() bool {
	if l.places == nil {
		return false
	}
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	l.pauses.Add(1)
	again := time.NewTicker(recheck)
	defer again.Stop()
	for {
		l.makeRoom(time.Now())
		select {
		case l.places <- struct{}{}:
			return true
		case <-again.C:
		case <-l.closed:
			return false
		}
	}
}

// Addr gives what is listened on, with the port that the system chose.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close ends Accept. Connections stay open. Further calls do nothing.
func (l *Listener) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.closed)
		err = l.inner.Close()
	})
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Stats is what a Listener has done.
type Stats struct {
	// Open is the number of connections that are open, and Limit the most there may
	// be; 0 is no bound.
	Open, Limit int
	// Accepted counts all connections since the start.
	Accepted uint64
	// Pauses counts how often Accept found every place taken.
	Pauses uint64
	// ClosedIdle counts the idle connections that were closed in favor of newcomers, and
	// TooMany those that were closed because their address had too many.
	ClosedIdle, TooMany uint64
}

// Stats reads the counters. What happens meanwhile may be in it in part.
func (l *Listener) Stats() Stats {
	return Stats{
		Open: int(l.open.Load()), Limit: l.limit, Accepted: l.accepted.Load(), Pauses: l.pauses.Load(),
		ClosedIdle: l.closedIdle.Load(), TooMany: l.tooMany.Load(),
	}
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn

	from   *Listener
	placed bool // it has a place to give back
	once   sync.Once

	since    atomic.Int64 // since when the connection is idle, in nanoseconds of Unix time; busy, or chosen
	arriving atomic.Bool  // it is new, has sent something since it became idle, or is being written to
	unread   atomic.Bool  // it is being written to, with a bound

	closed  bool       // under from.mu
	address netip.Addr // under from.mu: what it is counted under; the zero Addr is nothing
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.from.forget(c)
		c.from.open.Add(-1)
		if c.placed {
			<-c.from.places
		}
	})
	return err
}

// CloseWrite tells the peer that nothing more comes, where the connection can.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
