package grpcpace

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
)

// stream takes a permit for each message if the Config says so, and reads the server's header and
// status. Like every ClientStream, it allows one sending and one receiving goroutine at a time.
type stream struct {
	grpc.ClientStream

	pacing    *Pacing
	listener  *backoff.Listener
	method    string
	oneAnswer bool            // The stream is over with the first message.
	ctx       context.Context //nolint:containedctx // It is the stream's own.
	cancel    context.CancelFunc
	begun     bool // A message has come, and with it the header.

	mu    sync.Mutex
	sent  time.Time // when the last permit was given
	ended bool
}

// SendMsg implements grpc.ClientStream. If a message gets no permit, the stream ends, as always in gRPC
// when a message cannot be sent.
func (s *stream) SendMsg(m any) error {
	if !s.pacing.config.PerMessage {
		return s.ClientStream.SendMsg(m)
	}
	err := s.pacing.acquire(s.ctx, s.listener, s.method, m)
	s.mu.Lock()
	ended := s.ended
	if err == nil && !ended {
		s.sent = s.listener.Sending(false)
	}
	s.mu.Unlock()
	switch {
	case ended:
		return io.EOF // RecvMsg tells why.
	case err != nil:
		s.cancel()
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil || s.oneAnswer {
		s.end(err)
		return err
	}
	if !s.begun {
		s.begun = true
		s.hearHeader()
	}
	return nil
}

// hearHeader hears the header of a stream that goes on: it counts when it says something.
func (s *stream) hearHeader() {
	header, err := s.Header() // The header has arrived.
	if err != nil {
		return
	}
	if a := feedback.Metadata(feedback.Served, header, time.Now()); a != (feedback.Advice{}) {
		s.listener.Observe(a, s.lastSent())
	}
}

// end hears what the stream ended with; io.EOF is no status, and asks nothing. The
// header is heard if it has not been.
func (s *stream) end(err error) {
	s.mu.Lock()
	ended := s.ended
	s.ended = true
	s.mu.Unlock()
	if ended {
		return
	}
	trailer := s.Trailer()
	if header, failed := s.Header(); failed == nil && !s.begun {
		observe(s.listener, err, s.lastSent(), header, trailer)
	} else {
		observe(s.listener, err, s.lastSent(), trailer)
	}
	s.cancel()
}

func (s *stream) lastSent() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}
