package grpclimit

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// stream is what the service gets: a context with the guard's marks, and what the
// caller is told goes out with the header. It waits for the service to send its
// header, or a message: a stream that ends before that has a trailer alone, which
// is what tells clients that they may try again.
//
// Like every ServerStream it is sent to from one goroutine at a time.
type stream struct {
	grpc.ServerStream

	ctx  context.Context //nolint:containedctx // It is the stream's own: Context gives it.
	told metadata.MD     // nil when it is on its way
	seen *answered       // of a stream whose end a stage waits for; nil else
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// SendHeader implements grpc.ServerStream.
func (s *stream) SendHeader(md metadata.MD) error {
	s.note(md)
	s.tell()
	return s.ServerStream.SendHeader(md)
}

// SetHeader implements grpc.ServerStream.
func (s *stream) SetHeader(md metadata.MD) error {
	s.note(md)
	return s.ServerStream.SetHeader(md)
}

// SetTrailer implements grpc.ServerStream.
func (s *stream) SetTrailer(md metadata.MD) {
	s.note(md)
	s.ServerStream.SetTrailer(md)
}

// note sees the metadata that the handler sets.
func (s *stream) note(md metadata.MD) {
	if s.seen != nil {
		s.seen.note(md)
	}
}

// SendMsg implements grpc.ServerStream.
func (s *stream) SendMsg(m any) error {
	s.tell()
	return s.ServerStream.SendMsg(m)
}

// tell adds what the caller is told to the header, or, when the service has sent
// that past us, to the trailer.
func (s *stream) tell() {
	if s.told == nil {
		return
	}
	if s.ServerStream.SetHeader(s.told) != nil {
		s.SetTrailer(s.told)
	}
	s.told = nil
}
