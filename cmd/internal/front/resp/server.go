package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// WriteTimeout is how long a client may leave answers unread. The listener must apply it.
const WriteTimeout = 10 * time.Second

// handshakeTimeout bounds the handshake of TLS.
const handshakeTimeout = 10 * time.Second

// Config configures a Server.
type Config struct {
	// Guard decides.
	Guard *guard.Guard
	// Gate lets clients in; nil lets everyone in.
	Gate *access.Gate
	// TLS is the configuration of TLS; nil means none.
	TLS *tls.Config
	// Idle closes a connection that has had no complete command for so long.
	Idle time.Duration
	// Trusts reports whether a peer is a gateway of many users, whose connections Costs has as trusted. A peer on a unix socket has
	// the zero Addr. With nil, no peer is trusted.
	Trusts func(peer netip.Addr) bool
	// Version is shown to clients.
	Version string
	// Log gets faults of our own.
	Log *slog.Logger
}

// Server serves connections of Redis clients. It is safe for concurrent use.
type Server struct {
	pools

	guard   *guard.Guard
	gate    *access.Gate
	tls     *tls.Config
	idle    time.Duration
	trusts  func(netip.Addr) bool
	version string
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // It is that of all commands, and ends with Close.
	cancel  context.CancelFunc
	began   time.Time

	closing atomic.Bool
	serving sync.WaitGroup
	mu      sync.Mutex
	conns   map[*conn]struct{} // guarded by mu
	last    int64              // the last id; guarded by mu
	stats   counters
}

type counters struct{ accepted, commands, faults atomic.Uint64 }

func (c *counters) count(commands, faults int) {
	if commands > 0 {
		c.commands.Add(uint64(commands))
	}
	if faults > 0 {
		c.faults.Add(uint64(faults))
	}
}

// Stats are the counters of a Server.
type Stats struct {
	// Open is the number of connections. Accepted counts them since the start.
	Open     int
	Accepted uint64
	// Commands were answered, Faults of them with an error.
	Commands, Faults uint64
}

// New makes a Server. Idle of 0 means 5 minutes.
func New(c Config) *Server {
	if c.Idle <= 0 {
		c.Idle = 5 * time.Minute
	}
	s := &Server{
		guard: c.Guard, gate: c.Gate, tls: c.TLS, idle: c.Idle, trusts: c.Trusts, version: c.Version, log: c.Log,
		conns: map[*conn]struct{}{}, began: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	return Stats{Open: open, Accepted: s.stats.accepted.Load(), Commands: s.stats.commands.Load(), Faults: s.stats.faults.Load()}
}

// Serve accepts connections until l is closed. It returns nil after Drain.
func (s *Server) Serve(l net.Listener) error {
	for {
		accepted, err := l.Accept()
		switch {
		case err == nil:
			s.start(accepted)
		case s.closing.Load() || errors.Is(err, net.ErrClosed):
			return nil
		case isTemporary(err):
			s.pause()
		default:
			return fmt.Errorf("resp: accepting connections: %w", err)
		}
	}
}

// acceptPause is the pause after a failed Accept, for example without free descriptors.
const acceptPause = 50 * time.Millisecond

// pause waits for acceptPause, or until Drain.
func (s *Server) pause() {
	timer := time.NewTimer(acceptPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

func isTemporary(err error) bool {
	failed, ok := errors.AsType[net.Error](err)
	return ok && failed.Temporary() //nolint:staticcheck // Its successor does not exist.
}

// start serves a connection.
func (s *Server) start(accepted net.Conn) {
	s.stats.accepted.Add(1)
	c := &conn{server: s, net: accepted}
	c.busy, _ = accepted.(activity)
	if s.tls != nil {
		c.net = tls.Server(accepted, s.tls)
	} else {
		c.open()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		_ = accepted.Close()
		return
	}
	s.last++
	c.id = s.last
	s.conns[c] = struct{}{}
	s.serving.Go(c.serve)
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// handshake begins TLS, if there is TLS.
func (c *conn) handshake() bool {
	secured, ok := c.net.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(c.server.ctx, handshakeTimeout)
	defer cancel()
	return secured.HandshakeContext(ctx) == nil
}

// Drain ends idle connections, and waits for the commands in progress to be answered. When ctx ends,
// it closes the rest. The caller closes the listener.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for c := range s.conns {
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // A time in the past.
	}
	s.mu.Unlock()
	cut := make(chan int, 1)
	stop := context.AfterFunc(ctx, func() { cut <- s.closeAll() })
	s.serving.Wait()
	s.cancel()
	if stop() {
		return nil
	}
	if n := <-cut; n > 0 {
		return fmt.Errorf("resp: closed %s before all answers were sent: %w", field.Counted(n, "connection"), context.Cause(ctx))
	}
	return nil
}

// closeAll closes all connections, and gives the number of those that had answers to get.
func (s *Server) closeAll() (cut int) {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if !c.answered.Load() {
			cut++
		}
		if plain, ok := c.net.(*tls.Conn); ok { // Close would wait to send an alert.
			_ = plain.NetConn().Close()
			continue
		}
		_ = c.net.Close()
	}
	return cut
}
