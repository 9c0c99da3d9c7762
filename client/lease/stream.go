package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/internal/lease/holder"
	"github.com/headgate/headgate/internal/proto/wire"
	"github.com/headgate/headgate/internal/readfile"
)

const (
	// method is the full name of the stream.
	method = "/headgate.lease.v1.Leases/Stream"
	// leastPause and mostPause bound the pause before another attempt to open a stream.
	leastPause, mostPause = 50 * time.Millisecond, 2 * time.Second
	// openPatience is how long a server may take to accept a stream.
	openPatience = 5 * time.Second
	// mostToken bounds the file of a token, in bytes.
	mostToken = 4096
)

// errDraining and errMaster end a stream for another one.
var (
	errDraining = errors.New("the server drains")
	errMaster   = errors.New("another server is the master")
	errSilent   = fmt.Errorf("the server did not accept the stream within %v: check its address, and the network", openPatience)
)

// run keeps a stream open while there are leases, until the client is closed.
func (k *Client) run() {
	at, pause, moves := rand.IntN(len(k.config.Servers)), leastPause, 0
	for k.wanted() {
		s := &stream{client: k, server: k.config.Servers[at], master: -1}
		err := s.serve()
		if k.done() {
			return
		}
		if s.leased {
			pause, moves = leastPause, 0
		}
		next := (at + 1) % len(k.config.Servers)
		switch {
		case s.master >= 0 && moves < len(k.config.Servers):
			at, moves = s.master, moves+1
			continue
		case errors.Is(err, errDraining) && moves < len(k.config.Servers):
			at, moves = next, moves+1
			continue
		}
		at = next
		k.mu.Lock()
		k.log.fault("no stream to a server: leases end unless one answers", "server", s.server, "error", err)
		k.fail(fmt.Sprintf("no stream to server %q: %v", s.server, err))
		k.mu.Unlock()
		poke(k.alarm)
		if !k.rest(time.Duration((0.5 + rand.Float64()) * float64(pause))) {
			return
		}
		pause, moves = min(2*pause, mostPause), 0
	}
}

// wanted waits for the first lease. It reports false if the client is closed.
func (k *Client) wanted() bool {
	for {
		k.mu.Lock()
		closed, claims := k.closed, len(k.leases)
		k.mu.Unlock()
		if closed || claims > 0 {
			return !closed
		}
		<-k.work
	}
}

// done reports whether the client is closed.
func (k *Client) done() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// rest waits. It reports false if the client is closed.
func (k *Client) rest(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	for {
		select {
		case <-late.C:
			return true
		case <-k.work:
			if k.done() {
				return false
			}
		}
	}
}

// stream is one stream to a server.
type stream struct {
	client *Client
	server string
	stream grpc.ClientStream
	master int // the index of the server to which this one sends us, or -1
	leased bool
	fault  error // why the stream ended, from receive
}

// serve opens a stream and uses it until it ends.
func (s *stream) serve() error {
	k := s.client
	conn, err := k.conn(s.server)
	if err != nil {
		return fmt.Errorf("lease: server %q: %w", s.server, err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(k.life)
	defer cancel()
	if err := s.open(ctx, cancel, conn); err != nil {
		if k.config.Dial != nil {
			return err // The connection is the caller's.
		}
		return wire.Mismatch(err, k.config.TLS != nil, "Config.TLS (lease.tls in a configuration)")
	}
	k.mu.Lock()
	k.cancel = cancel
	k.holder.Connected(k.now())
	k.mu.Unlock()
	received := make(chan struct{})
	go func() {
		defer close(received)
		s.receive()
		cancel()
	}()
	s.send(ctx)
	cancel()
	<-received
	k.mu.Lock()
	k.cancel = nil
	k.holder.Disconnected()
	k.mu.Unlock()
	return s.fault
}

// open opens the stream, and waits until the server accepts it.
func (s *stream) open(ctx context.Context, cancel func(), conn *grpc.ClientConn) error {
	k := s.client
	token := k.config.Token
	if k.config.TokenFile != "" {
		var err error
		if token, err = readfile.Line(k.config.TokenFile, mostToken, "token"); err != nil {
			return err
		}
	}
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	late := time.AfterFunc(openPatience, cancel)
	stop := make(chan struct{})
	left := make(chan struct{})
	go func() { // Close must not wait for a server that accepts nothing.
		defer close(left)
		for {
			select {
			case <-stop:
				return
			case <-k.work:
				if k.done() {
					cancel()
				}
			}
		}
	}()
	defer func() { close(stop); <-left; poke(k.work) }()
	defer late.Stop()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(codec{}))
	if err != nil {
		return silent(late, err)
	}
	s.stream = stream
	if header, err := stream.Header(); err == nil && header != nil {
		return nil
	}
	if err = stream.RecvMsg(new([]byte)); err != nil && !errors.Is(err, io.EOF) { // It has the reason.
		return silent(late, err)
	}
	return errSilent
}

// silent gives the cause of an error after the end of openPatience, which gRPC does not know.
func silent(late *time.Timer, err error) error {
	if late.Stop() {
		return err
	}
	return errSilent
}

// send sends reports until the stream ends, or until all is said after Close.
func (s *stream) send(ctx context.Context) {
	k := s.client
	var r holder.Report
	for {
		k.mu.Lock()
		now := k.now()
		due := k.holder.Report(now, &r)
		closed := k.closed
		k.mu.Unlock()
		if due {
			if s.stream.SendMsg(mem.SliceBuffer(encode(&r))) != nil {
				return // receive has the reason.
			}
			poke(k.alarm)
			continue
		}
		if closed {
			_ = s.stream.CloseSend()
			<-ctx.Done() // The server ends the stream when it has read the releases, or Close ends it.
			return
		}
		select {
		case <-k.work:
		case <-ctx.Done():
			return
		}
	}
}

// receive takes messages until the stream ends.
func (s *stream) receive() {
	k := s.client
	var in []byte
	var m message
	for {
		if s.fault = s.stream.RecvMsg(&in); s.fault != nil {
			return
		}
		if s.fault = m.decode(in); s.fault != nil {
			return
		}
		s.take(&m)
		k.wake()
		switch {
		case m.master != "":
			s.master = slices.Index(k.config.Servers, m.master)
			s.fault = errMaster
			if s.master < 0 {
				k.mu.Lock()
				k.log.fault("the master is not in Servers: it gets no token", "master", m.master)
				k.mu.Unlock()
			}
			return
		case m.draining:
			s.fault = errDraining
			return
		}
	}
}

// take gives leases and refusals to the holder.
func (s *stream) take(m *message) {
	k := s.client
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if s.leased = s.leased || len(m.leases) > 0; len(m.leases)+len(m.refusals) > 0 {
		k.fault = ""
	}
	k.holder.Receive(now, m.leases)
	for i := range m.refusals {
		r := &m.refusals[i]
		if r.Err.Resource != "" {
			k.holder.Refuse(now, r)
			continue
		}
		k.log.fault("the server refuses a report", "server", s.server, "reason", r.Err.Text)
	}
	k.publish(now)
}
