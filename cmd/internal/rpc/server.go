package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

const (
	// MaxMessage bounds a request and a response, in bytes. It is the default of gRPC clients.
	MaxMessage = 4 << 20
	// maxHeader bounds the metadata of a call.
	maxHeader = 8 << 10
	// streamWindow is how much a client may send on a stream before the service reads it. It is
	// the smallest window that gRPC has. A fixed window also saves the pings that estimate a
	// larger one.
	streamWindow = 64 << 10
	// connectionWindow is large, so that small calls rarely need an update of the window.
	connectionWindow = 1 << 20
	// buffer is the size of the read and the write buffer of a connection. It holds many small
	// calls, so that one system call reads or writes all of them.
	buffer = 32 << 10
	// pingInterval is the shortest interval of a client's pings. Clients that ping faster are
	// disconnected.
	pingInterval = 5 * time.Second
)

// Config configures New. All durations and bounds must be positive.
type Config struct {
	// TLS is the configuration of a certs.Server; nil means no TLS.
	TLS *tls.Config
	// MaxStreams bounds the calls in flight on a connection.
	MaxStreams int
	// MaxCallMemory bounds the memory of the calls in flight of all connections, in bytes. One
	// half is for what clients have sent and not read, and the other half for services at work.
	MaxCallMemory int64
	// HandshakeTimeout bounds the time for the handshakes of TLS and HTTP/2.
	HandshakeTimeout time.Duration
	// Idle closes a connection without a call, with a GOAWAY.
	Idle time.Duration
	// WriteTimeout closes a connection whose client reads nothing for so long. It is checked
	// once a second.
	WriteTimeout time.Duration
	// Keepalive is the time without a byte after which the server sends a ping, and
	// KeepaliveTimeout bounds the wait for its answer.
	Keepalive, KeepaliveTimeout time.Duration
	// MaxAge is the age at which a connection gets a GOAWAY, up to a tenth more or less at
	// random. MaxAgeGrace bounds the calls in flight after that.
	MaxAge, MaxAgeGrace time.Duration
	// Trusts reports whether a peer is a gateway of many users, whose connections Costs has as trusted. A peer on a unix socket has
	// the zero Addr. With nil, no peer is trusted.
	Trusts func(peer netip.Addr) bool
	// Services register themselves.
	Services []func(grpc.ServiceRegistrar)
}

// Server serves gRPC on one listener. A Server is safe for concurrent use.
type Server struct {
	config     Config
	grpc       *grpc.Server
	health     *health
	callMemory atomic.Int64        // The memory of the calls in flight of all connections.
	waiting    atomic.Int64        // The part of it that follows from connections: what clients sent and have not read.
	working    *semaphore.Weighted // The other part: what services use.
	evicted    atomic.Uint64
	evicting   sync.Mutex // Held by evict.

	mu       sync.Mutex // Guards the fields below.
	conns    map[*conn]struct{}
	draining bool
}

// New creates a server with the services of c and the health service.
func New(c Config) *Server {
	s := &Server{config: c, health: newHealth(), conns: map[*conn]struct{}{}, working: semaphore.NewWeighted(c.MaxCallMemory / 2)}
	s.grpc = grpc.NewServer(s.options()...)
	for _, register := range c.Services {
		register(s.grpc)
	}
	healthpb.RegisterHealthServer(s.grpc, s.health)
	return s
}

func (s *Server) options() []grpc.ServerOption {
	c := &s.config
	secured := insecure.NewCredentials()
	if c.TLS != nil {
		secured = credentials.NewTLS(c.TLS)
	}
	return []grpc.ServerOption{
		grpc.Creds(counting{secured}), grpc.ForceServerCodecV2(newCodec()),
		grpc.ConnectionTimeout(c.HandshakeTimeout),
		grpc.MaxConcurrentStreams(uint32(c.MaxStreams)),
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.MaxHeaderListSize(maxHeader),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: c.Idle, MaxConnectionAge: c.MaxAge, MaxConnectionAgeGrace: c.MaxAgeGrace,
			Time: c.Keepalive, Timeout: c.KeepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval, PermitWithoutStream: true}),
	}
}

// Serve serves the connections of l, which should be a listen.Listener, until Drain. It returns
// nil after Drain. The caller calls Serve once.
func (s *Server) Serve(l net.Listener) error {
	stop := make(chan struct{})
	var checking sync.WaitGroup
	checking.Go(func() { s.check(stop) })
	err := s.grpc.Serve(&listener{l, s})
	close(stop)
	checking.Wait()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("rpc: serving on %s: %w", l.Addr(), err)
	}
	return nil
}

// check looks at all connections once a second.
func (s *Server) check(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			for _, c := range s.open() {
				c.check(now, s.config.WriteTimeout)
			}
		}
	}
}

func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// SetServing says whether the service of a name is healthy. Names are unknown until they are
// set, and the name "" serves from the start. After Drain began, SetServing does nothing.
func (s *Server) SetServing(name string, serving bool) { s.health.set(name, serving) }

// Stats has the counters of a Server.
type Stats struct {
	// CallMemory is the memory of the calls in flight, in bytes.
	CallMemory int64
	// Evicted counts the connections that were closed because calls in flight took too much memory.
	Evicted uint64
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	return Stats{CallMemory: s.callMemory.Load(), Evicted: s.evicted.Load()}
}

// Drain ends the server. The health turns to NOT_SERVING, no connection is accepted, and calls
// in flight finish. When ctx ends, Drain closes the connections, and returns an error if calls
// were in flight. Drain also ends a server that never served.
func (s *Server) Drain(ctx context.Context) error {
	s.health.drain()
	s.hurry()
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	select {
	case <-graceful:
		return nil
	case <-ctx.Done():
	}
	open := s.open()
	for _, c := range open {
		c.Abort()
	}
	s.grpc.Stop()
	<-graceful
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("rpc: connections closed before their calls ended: %d: %w", len(open), context.Cause(ctx))
}

// hurry gives the connections in a handshake a last short time. grpc-go waits for them before it
// drains, for up to the HandshakeTimeout.
func (s *Server) hurry() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, c := range s.open() {
		c.hurry()
	}
}
