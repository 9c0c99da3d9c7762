package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const (
	method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	// openTimeout and sendTimeout end a stream that the server does not accept or does not read.
	openTimeout = 10 * time.Second
	sendTimeout = 10 * time.Second
)

var (
	errNotOpened = fmt.Errorf("the server did not accept the stream within %v", openTimeout)
	errNotRead   = fmt.Errorf("the server did not read a message within %v", sendTimeout)
	errClosed    = errors.New("the server closed the stream")
)

// stream is one connection with one stream. A goroutine receives the responses.
type stream struct {
	source    *Source
	conn      *grpc.ClientConn
	grpc      grpc.ClientStream
	ctx       context.Context //nolint:containedctx // the lifetime of the stream
	cancel    context.CancelCauseFunc
	responses chan *response
	lost      chan error // gets one error when the stream has ended
	receiving sync.WaitGroup
}

// open makes a connection and opens the stream.
func (f *follower) open(ctx context.Context) (*stream, error) {
	conn, err := f.connection()
	if err != nil {
		return nil, err
	}
	s := &stream{source: f.source, conn: conn, responses: make(chan *response), lost: make(chan error, 1)}
	s.ctx, s.cancel = context.WithCancelCause(metadata.NewOutgoingContext(ctx, f.source.headers))
	err = s.within(openTimeout, errNotOpened, func() (err error) {
		s.grpc, err = conn.NewStream(s.ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		return err
	})
	if err != nil {
		s.close()
		return nil, err
	}
	s.receiving.Go(s.receive)
	return s, nil
}

// close ends the stream and its goroutine.
func (s *stream) close() {
	s.cancel(context.Canceled)
	_ = s.conn.Close() // The connection is not used again.
	s.receiving.Wait()
}

// send sends one request. A lost stream is not an error here: the goroutine reports the cause.
func (s *stream) send(r request) error {
	encoded, err := r.encode(s.source.config.NodeID, s.source.config.NodeMetadata)
	if err != nil {
		return err
	}
	err = s.within(sendTimeout, errNotRead, func() error { return s.grpc.SendMsg(encoded) })
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// within runs f, and ends the stream with a cause if f takes too long.
func (s *stream) within(limit time.Duration, cause error, f func() error) error {
	timer := time.AfterFunc(limit, func() { s.cancel(cause) })
	defer timer.Stop()
	return s.cause(f())
}

// cause replaces the error of a stream that this side has ended.
func (s *stream) cause(err error) error {
	if ended := context.Cause(s.ctx); err != nil && ended != nil {
		return ended
	}
	return err
}

// receive passes the responses on until the stream is lost.
func (s *stream) receive() {
	var reads pacing
	for {
		r := new(response)
		if err := s.grpc.RecvMsg(r); err != nil {
			if errors.Is(err, io.EOF) {
				err = errClosed
			}
			s.lost <- s.cause(err)
			return
		}
		select {
		case s.responses <- r:
		case <-s.ctx.Done():
			s.lost <- context.Cause(s.ctx)
			return
		}
		if wait := reads.next(time.Now()); wait > 0 && !pause(s.ctx, wait) {
			s.lost <- context.Cause(s.ctx)
			return
		}
	}
}

const (
	readEvery = 100 * time.Millisecond
	readBurst = 20 // responses that are read without a pause
)

// pacing spaces the reads from a server that sends without end.
type pacing struct{ due time.Time }

// next counts a response, and returns the pause before the next read.
func (p *pacing) next(now time.Time) time.Duration {
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(readEvery)
	return p.due.Sub(now) - readBurst*readEvery
}
