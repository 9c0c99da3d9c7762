package grpclimit

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/guard"
)

// answered collects the response metadata that stages read. Goroutines of a handler may set
// metadata concurrently.
type answered struct {
	facts guard.Facts
	mu    sync.Mutex
	md    metadata.MD // guarded by mu
}

// note notes the values in md, and returns md without those that are for the stages alone.
func (a *answered) note(md metadata.MD) metadata.MD {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.facts.Answer {
		if values := md.Get(name); len(values) > 0 {
			a.md.Set(name, values...)
		}
	}
	for _, name := range a.facts.Private {
		if len(md.Get(name)) > 0 {
			md = md.Copy() // The metadata belongs to the handler.
			md.Delete(name)
		}
	}
	return md
}

// header looks up a header or a trailer.
func (a *answered) header(name string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if values := a.md.Get(name); len(values) > 0 {
		return strings.Join(values, ", "), true // As for HTTP: a cost in two lines is none.
	}
	return "", false
}

// finish ends the ticket of a call with the result of its handler.
func (a *answered) finish(ctx context.Context, t *guard.Ticket, returned bool, err error) {
	o := guard.Outcome{GRPC: true, Status: int(status.Code(err)), Header: a.header}
	switch {
	case !returned:
		o.End, o.Status = guard.Panicked, int(codes.Unknown)
	case ctx.Err() != nil:
		o.End = guard.ClientLeft
	}
	t.Done(o)
}

// serveCall runs the handler of a unary call and then ends the ticket.
func serveCall(ctx context.Context, t *guard.Ticket, handle func(context.Context) (any, error)) (resp any, err error) {
	ctx = t.Context(ctx)
	a, returned := &answered{facts: t.Facts(), md: metadata.MD{}}, false
	ctx = a.listen(ctx)
	defer func() { a.finish(ctx, t, returned, err) }()
	resp, err = handle(ctx)
	returned = true
	if stopped(t, err) {
		_ = grpc.SetTrailer(ctx, metadata.MD{pushbackKey: {stoppedPushback}}) // SetTrailer fails only without a connection.
		return nil, errStopped()
	}
	return resp, err
}

// listen gives a context in which grpc.SetHeader, SendHeader and SetTrailer note the metadata.
func (a *answered) listen(ctx context.Context) context.Context {
	inner := grpc.ServerTransportStreamFromContext(ctx)
	if inner == nil || len(a.facts.Answer) == 0 {
		return ctx
	}
	return grpc.NewContextWithServerTransportStream(ctx, transportStream{inner, a})
}

// transportStream records the metadata that a handler sets by its context.
type transportStream struct {
	grpc.ServerTransportStream

	seen *answered
}

// SetHeader implements grpc.ServerTransportStream.
func (s transportStream) SetHeader(md metadata.MD) error {
	return s.ServerTransportStream.SetHeader(s.seen.note(md))
}

// SendHeader implements grpc.ServerTransportStream.
func (s transportStream) SendHeader(md metadata.MD) error {
	return s.ServerTransportStream.SendHeader(s.seen.note(md))
}

// SetTrailer implements grpc.ServerTransportStream.
func (s transportStream) SetTrailer(md metadata.MD) error {
	return s.ServerTransportStream.SetTrailer(s.seen.note(md))
}

// serveStream runs the handler of a stream and then ends the ticket.
func serveStream(s *stream, t *guard.Ticket, handle func() error) (err error) {
	s.ctx = t.Context(s.ctx)
	s.seen = &answered{facts: t.Facts(), md: metadata.MD{}}
	s.ctx = s.seen.listen(s.ctx)
	returned := false
	defer func() { s.seen.finish(s.ctx, t, returned, err) }()
	t.Stream()
	s.ticket = t
	err = handle()
	returned = true
	if stopped(t, err) {
		s.ServerStream.SetTrailer(metadata.MD{pushbackKey: {stoppedPushback}})
		return errStopped()
	}
	return err
}
