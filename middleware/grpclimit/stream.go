package grpclimit

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/guard"
)

// stream is the ServerStream for the service. The context has the guard's marks. stream adds
// the caller's limit to the header as late as possible: when the service sends its header or
// a message. A call that fails earlier has only a trailer, and clients may retry the call.
//
// As in every ServerStream, only one goroutine at a time may send.
type stream struct {
	grpc.ServerStream

	ctx       context.Context //nolint:containedctx // because Context returns it.
	announced metadata.MD     // nil after it was added
	seen      *answered       // set if a stage waits for the end of the stream, else nil
	ticket    *guard.Ticket   // is told of the answer's begin; nil afterwards, or without such a stage
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// SendHeader implements grpc.ServerStream.
func (s *stream) SendHeader(md metadata.MD) error {
	s.announce()
	return s.ServerStream.SendHeader(s.note(md))
}

// SetHeader implements grpc.ServerStream.
func (s *stream) SetHeader(md metadata.MD) error {
	return s.ServerStream.SetHeader(s.note(md))
}

// SetTrailer implements grpc.ServerStream.
func (s *stream) SetTrailer(md metadata.MD) {
	s.ServerStream.SetTrailer(s.note(md))
}

// note notes the metadata that the handler sets, and returns what the client gets.
func (s *stream) note(md metadata.MD) metadata.MD {
	if s.seen == nil {
		return md
	}
	return s.seen.note(md)
}

// SendMsg implements grpc.ServerStream.
func (s *stream) SendMsg(m any) error {
	s.announce()
	return s.ServerStream.SendMsg(m)
}

// announce tells the stages that the answer begins, and adds the caller's limit to the header. If the service has already sent the
// header directly, it adds the limit to the trailer.
func (s *stream) announce() {
	if t := s.ticket; t != nil {
		s.ticket = nil // A stage may panic.
		t.Answers(0)
	}
	if s.announced == nil {
		return
	}
	if s.ServerStream.SetHeader(s.announced) != nil {
		s.SetTrailer(s.announced)
	}
	s.announced = nil
}
