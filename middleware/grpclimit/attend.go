package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/guard"
)

// answered gathers the metadata of an answer that stages read. Goroutines of a handler
// may set metadata at once.
type answered struct {
	names []string
	mu    sync.Mutex
	md    metadata.MD // under mu
}

func (a *answered) note(md metadata.MD) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.names {
		if values := md.Get(name); len(values) > 0 {
			a.md.Set(name, values...)
		}
	}
}

// Header looks up a header or a trailer.
func (a *answered) header(name string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if values := a.md.Get(name); len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// finish ends the ticket of a call with what its handler gave.
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

// attendCall runs the handler of a unary call and ends the ticket with it.
func attendCall(ctx context.Context, t *guard.Ticket, handle func(context.Context) (any, error)) (resp any, err error) {
	ctx = t.Context(ctx)
	a, returned := &answered{names: t.Facts().Answer, md: metadata.MD{}}, false
	if inner := grpc.ServerTransportStreamFromContext(ctx); inner != nil && len(a.names) > 0 {
		ctx = grpc.NewContextWithServerTransportStream(ctx, transportStream{inner, a})
	}
	defer func() { a.finish(ctx, t, returned, err) }()
	resp, err = handle(ctx)
	returned = true
	return resp, err
}

// transportStream sees the metadata that a unary handler sets.
type transportStream struct {
	grpc.ServerTransportStream

	seen *answered
}

// SetHeader implements grpc.ServerTransportStream.
func (s transportStream) SetHeader(md metadata.MD) error {
	s.seen.note(md)
	return s.ServerTransportStream.SetHeader(md)
}

// SendHeader implements grpc.ServerTransportStream.
func (s transportStream) SendHeader(md metadata.MD) error {
	s.seen.note(md)
	return s.ServerTransportStream.SendHeader(md)
}

// SetTrailer implements grpc.ServerTransportStream.
func (s transportStream) SetTrailer(md metadata.MD) error {
	s.seen.note(md)
	return s.ServerTransportStream.SetTrailer(md)
}

// attendStream runs the handler of a stream and ends the ticket with it.
func attendStream(s *stream, t *guard.Ticket, handle func() error) (err error) {
	s.ctx = t.Context(s.ctx)
	s.seen = &answered{names: t.Facts().Answer, md: metadata.MD{}}
	returned := false
	defer func() { s.seen.finish(s.ctx, t, returned, err) }()
	t.Stream()
	err = handle()
	returned = true
	return err
}
