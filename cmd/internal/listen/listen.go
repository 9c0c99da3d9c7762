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
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/oldest"
)

const (
	// keepAliveIdle, keepAliveEvery and keepAliveProbes detect a dead peer within a minute,
	// which is the usual idle timeout of connections.
	keepAliveIdle   = 30 * time.Second
	keepAliveEvery  = 10 * time.Second
	keepAliveProbes = 3
	// DefaultProxyHeaderTimeout is ample, because a balancer sends the header with its first
	// packet.
	DefaultProxyHeaderTimeout = 5 * time.Second
)

// Config configures Open.
type Config struct {
	// Address is host:port, :port, unix:/path, systemd, or systemd:NAME.
	Address string
	// MaxConnections bounds the open connections; 0 means no bound. At the bound a new
	// connection replaces the connection that has been idle longest.
	MaxConnections int
	// PerAddress bounds the connections of one IPv4 address or IPv6 /64; 0 means no bound.
	// Connections beyond the bound are closed. With the PROXY protocol, the address in the
	// header counts.
	PerAddress int
	// Exempt reports whether PerAddress does not apply to an address; nil exempts none.
	Exempt func(netip.Addr) bool
	// Admit reports whether a connection of an address is accepted; nil accepts all. With the PROXY protocol, the
	// address is that in the header. It must not block.
	Admit func(netip.Addr) bool
	// ProxyProtocol are the networks of balancers. A balancer must begin each connection
	// with a PROXY header. From other peers, no PROXY header is read.
	ProxyProtocol []netip.Prefix
	// ProxyProtocolUnix says that every peer on a unix socket is a balancer.
	ProxyProtocolUnix bool
	// ProxyHeaderTimeout bounds the time until a balancer has sent the header; 0 means
	// DefaultProxyHeaderTimeout.
	ProxyHeaderTimeout time.Duration
	// WriteTimeout bounds how long a peer may leave a piece of a response, of at most
	// 64 KiB, unread; 0 means no bound. A peer has 7/8 of it at least. With a bound, a connection whose response waits for
	// its peer counts as idle, and a new connection may replace it.
	WriteTimeout time.Duration
	// Inherited has the inherited sockets, for addresses that begin with systemd. Listeners
	// of one process share it. With nil, Open uses a new Inherited.
	Inherited *Inherited
}

// Listener is an open socket with its layers. A Listener is safe for concurrent use.
type Listener struct {
	inner      net.Listener
	keepsAlive bool // accepted connections have keep-alives; else Accept enables them
	balancers  balancers
	timeout    time.Duration
	writing    time.Duration // bound for writing one piece; 0 means no bound
	opened     time.Time
	clock      oldest.Clock // of counted.since
	limit      int
	places     chan struct{} // one element for each open connection; nil without a limit
	closed     chan struct{}
	closing    sync.Once

	perAddress int
	exempt     func(netip.Addr) bool
	admitted   func(netip.Addr) bool

	mu        sync.Mutex // guards conns, idle, addresses, and the marked fields of counted
	conns     map[*counted]struct{}
	idle      oldest.Finder[*counted]
	addresses map[netip.Addr]int // number of connections of each address; used with PerAddress only

	open       atomic.Int64
	accepted   atomic.Uint64
	pauses     atomic.Uint64
	closedIdle atomic.Uint64
	tooMany    atomic.Uint64
}

// Open opens the socket of c. An error gives the cause and advice. ctx bounds only the
// opening.
func Open(ctx context.Context, c Config) (*Listener, error) {
	if c.Inherited == nil {
		c.Inherited = new(Inherited)
	}
	if c.ProxyHeaderTimeout <= 0 {
		c.ProxyHeaderTimeout = DefaultProxyHeaderTimeout
	}
	if err := ctx.Err(); err != nil { // The resolver may answer before it looks at ctx.
		return nil, fmt.Errorf("listen: %s: %w", c.Address, err)
	}
	inner, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	own, isTCP := inner.(*tcpListener)
	now := time.Now()
	l := &Listener{
		keepsAlive: isTCP && own.keepsAlive,
		inner:      inner, limit: c.MaxConnections, timeout: c.ProxyHeaderTimeout, writing: c.WriteTimeout, closed: make(chan struct{}),
		opened: now, clock: oldest.NewClock(now),
		balancers:  balancers{networks: c.ProxyProtocol, unix: c.ProxyProtocolUnix},
		perAddress: c.PerAddress, exempt: c.Exempt, admitted: c.Admit,
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
		return nil, fmt.Errorf("listen: %q is not an address: write host:port, :port, unix:/path or systemd", c.Address)
	}
	return openTCP(ctx, c.Address)
}

// tcpListener is a TCP socket of this process.
type tcpListener struct {
	net.Listener

	keepsAlive bool // its connections have keep-alives
}

func openTCP(ctx context.Context, address string) (*tcpListener, error) {
	l := new(tcpListener)
	config := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, socket syscall.RawConn) error {
		l.keepsAlive = enableKeepAlive(socket)
		return nil
	}}
	var err error
	if l.Listener, err = config.Listen(ctx, "tcp", address); err != nil {
		return nil, advise(err)
	}
	return l, nil
}

// Accept returns the next connection. At the bound it closes the connection that has been
// idle longest. If none is idle, Accept waits until one is idle or closed. Accept never
// waits for a client's bytes: the first Read, Write or RemoteAddr reads a balancer's header.
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

// admit counts a connection. It returns nil if the connection's address has too many.
func (l *Listener) admit(inner net.Conn) net.Conn {
	placed := l.take()
	l.accepted.Add(1)
	l.open.Add(1)
	if !l.keepsAlive {
		keepAlive(inner)
	}
	c := &counted{Conn: inner, from: l, placed: placed}
	c.since.Store(l.clock.At(time.Now()))
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

// keepAlive enables keep-alives. An error means that the connection is already closed, which
// its reader will notice.
func keepAlive(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveEvery, Count: keepAliveProbes,
		})
	}
}

// take waits for a place for an accepted connection. It returns false if the listener is
// closed meanwhile. The connection is still served, because no other process can accept it
// again.
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

// Addr returns the listener's address, with the port that the system chose.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close ends Accept. Open connections stay open. Later calls do nothing.
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

// Stats has the counters of a Listener.
type Stats struct {
	// Open is the number of open connections. Limit is its bound; 0 means no bound.
	Open, Limit int
	// Accepted counts all connections since the start.
	Accepted uint64
	// Pauses counts how often Accept found every place in use.
	Pauses uint64
	// ClosedIdle counts idle connections closed for new connections. TooMany counts
	// connections closed because their address had too many.
	ClosedIdle, TooMany uint64
}

// Stats reads the counters. Concurrent events may appear only in some counters.
func (l *Listener) Stats() Stats {
	return Stats{
		Open: int(l.open.Load()), Limit: l.limit, Accepted: l.accepted.Load(), Pauses: l.pauses.Load(),
		ClosedIdle: l.closedIdle.Load(), TooMany: l.tooMany.Load(),
	}
}

// counted is a connection that releases its place when it is closed.
type counted struct {
	net.Conn

	from   *Listener
	placed bool // the connection has a place to release
	once   sync.Once

	since    atomic.Int64 // start of the idle time, by from.clock; or busy, or chosen
	arriving atomic.Bool  // set if new, written to, or if bytes have arrived since the connection became idle
	unread   atomic.Bool  // a write with a timeout is in progress
	// writeUntil is the deadline of writes since the Listener was opened; 0 if renewDeadline has not set it.
	writeUntil atomic.Int64

	closed  bool       // guarded by from.mu
	address netip.Addr // guarded by from.mu; counted under this address; the zero Addr means not counted
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

// CloseWrite closes the sending side, if the connection supports it.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
