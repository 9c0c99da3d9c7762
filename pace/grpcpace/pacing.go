package grpcpace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/pace/backoff"
)

// Pacing makes each call when its pacer gives a permit, and follows the server's answers. Its
// interceptors may be used for any number of concurrent connections. Put them behind interceptors that
// retry, so that each attempt takes a permit.
type Pacing struct {
	config    Config
	methods   *methods
	listeners backoff.Listeners
	made      time.Time
	services  services
}

// New makes a Pacing. The caller keeps ownership of the pacers, and closes them.
func New(c Config) (*Pacing, error) {
	if c.Methods != nil && c.Pacer != nil || c.Methods == nil && c.Pacer == nil && c.Adaptive == nil {
		return nil, errMethods
	}
	p := &Pacing{config: c, made: time.Now()}
	if c.Adaptive != nil {
		if _, err := adaptive.NewService("", *c.Adaptive); err != nil {
			return nil, err //nolint:wrapcheck // The error names the field already.
		}
	}
	var err error
	p.methods, err = newMethods(c.Methods, &p.listeners)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Stats tells what became of the calls to each provider, by name: streams count as one
// call, or with Config.PerMessage each message does. Providers in Config.Methods are there from
// the start, others from their first call on.
func (p *Pacing) Stats() []Stats { return p.listeners.Stats() }

// Unary is a grpc.UnaryClientInterceptor.
func (p *Pacing) Unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	ctx, c, err := p.begin(ctx, cc)
	if err != nil {
		return refuse(err, time.Now())
	}
	err = p.unary(ctx, method, req, reply, cc, invoker, opts...)
	c.ended(ctx, err)
	return err
}

func (p *Pacing) unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	l, err := p.listener(cc, method)
	if err != nil {
		return refuse(err, time.Now())
	}
	if l == nil {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	if err := p.acquire(ctx, l, method, req); err != nil {
		return err
	}
	sent := l.Sending(false)
	var header, trailer metadata.MD
	// The caller's options are not written to: it may use them for other calls.
	opts = append(slices.Clip(opts), grpc.Header(&header), grpc.Trailer(&trailer))
	err = invoker(ctx, method, req, reply, cc, opts...)
	observe(l, err, sent, header, trailer)
	return err
}

// Stream is a grpc.StreamClientInterceptor.
func (p *Pacing) Stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, c, err := p.begin(ctx, cc)
	if err != nil {
		return nil, refuse(err, time.Now())
	}
	s, err := p.stream(ctx, desc, cc, method, streamer, opts...)
	if err != nil || c == nil {
		c.ended(ctx, err)
		return s, err
	}
	return &countedStream{ClientStream: s, ctx: ctx, call: c}, nil
}

func (p *Pacing) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	l, err := p.listener(cc, method)
	if err != nil {
		return nil, refuse(err, time.Now())
	}
	if l == nil {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := &stream{pacing: p, listener: l, method: method, oneAnswer: !desc.ServerStreams, sent: time.Now()}
	if !p.config.PerMessage {
		if err := p.acquire(ctx, l, method, nil); err != nil {
			return nil, err
		}
		s.sent = l.Sending(false)
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.ClientStream, err = streamer(s.ctx, desc, cc, method, opts...)
	if err != nil {
		s.cancel()
		observe(l, err, s.sent)
		return nil, err
	}
	return s, nil
}

// listener gives that of a call, nil when it is not paced.
func (p *Pacing) listener(cc *grpc.ClientConn, method string) (l *backoff.Listener, err error) {
	if p.methods == nil {
		return nil, fmt.Errorf("grpcpace: %w", headgate.ErrNotMade)
	}
	var ok bool
	if p.config.Pacer != nil {
		l = p.listeners.Listener(p.config.Pacer(cc.Target(), method))
		ok = l != nil
	} else {
		l, ok = p.methods.find(method)
	}
	if !ok && p.config.Strict {
		return nil, ErrNoPacer
	}
	return l, nil
}

// acquire takes the permits of a call or a message. Its errors are statuses.
func (p *Pacing) acquire(ctx context.Context, l *backoff.Listener, method string, message any) error {
	units := int64(1)
	if p.config.Cost != nil {
		units = p.config.Cost(method, message)
	}
	if units < 0 {
		return refuse(errCost, time.Now())
	}
	if err := l.Acquire(ctx, units, backoff.MaxWait(ctx, p.config.MaxWait)); err != nil {
		return refuse(err, time.Now())
	}
	return nil
}
