package access

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/config"
)

// bearer begins the value of a field Authorization.
const bearer = "Bearer "

// Registrar returns a registrar whose services let only the clients of the gate in. scopes has the scope of
// each method, like /headgate.v1.Decisions/Decide. It panics for a method without one, when the service
// registers.
func (g *Gate) Registrar(to grpc.ServiceRegistrar, scopes map[string]config.Scope) grpc.ServiceRegistrar {
	return registrar{to, g, scopes}
}

type registrar struct {
	to     grpc.ServiceRegistrar
	gate   *Gate
	scopes map[string]config.Scope
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(description *grpc.ServiceDesc, service any) {
	guarded := *description
	guarded.Methods = make([]grpc.MethodDesc, len(description.Methods))
	for i, m := range description.Methods {
		admit, handle := r.admission(description, m.MethodName), m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			ctx, err := admit(ctx)
			if err != nil {
				return nil, err
			}
			return handle(srv, ctx, decode, i)
		}
		guarded.Methods[i] = m
	}
	guarded.Streams = make([]grpc.StreamDesc, len(description.Streams))
	for i, m := range description.Streams {
		admit, handle := r.admission(description, m.StreamName), m.Handler
		m.Handler = func(srv any, stream grpc.ServerStream) error {
			ctx, err := admit(stream.Context())
			if err != nil {
				return err
			}
			return handle(srv, admitted{stream, ctx})
		}
		guarded.Streams[i] = m
	}
	r.to.RegisterService(&guarded, service)
}

// admission gives what lets the clients of a method in. A method without a scope lets no client in: a new method of a protocol must not
// be open before its scope is known.
func (r registrar) admission(description *grpc.ServiceDesc, method string) func(context.Context) (context.Context, error) {
	name := "/" + description.ServiceName + "/" + method
	scope, found := r.scopes[name]
	if !found {
		return func(context.Context) (context.Context, error) {
			return nil, status.Errorf(codes.Unimplemented, "the method %s has no scope, so this server does not offer it", name)
		}
	}
	return func(ctx context.Context) (context.Context, error) { return r.gate.admit(ctx, scope) }
}

// admitted is a stream with its call in the context.
type admitted struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // It is that of the stream.
}

// Context implements grpc.ServerStream.
func (a admitted) Context() context.Context { return a.ctx }

// admit lets the client of a call in. The error is of gRPC.
func (g *Gate) admit(ctx context.Context, scope config.Scope) (context.Context, error) {
	limited := g.control.addresses.policy.Load() > 0
	if g.Auth() == 0 && !limited {
		return ctx, nil
	}
	c := &Call{gate: g}
	if p, ok := peer.FromContext(ctx); ok {
		c.from, c.by.TLS = addressOf(p.Addr), tlsOf(p.AuthInfo)
	}
	err := g.Arrive(c.from)
	if err == nil {
		c.by.Token = tokenOf(metadata.ValueFromIncomingContext(ctx, "authorization"))
		c.client, err = g.Authenticate(&c.by)
	}
	if err == nil {
		err = c.client.Permit(scope)
	}
	if err != nil {
		c.Refused(err)
		return nil, Status(err)
	}
	return with(ctx, c), nil
}

// tokenOf gives the token of a field Authorization. Two of them give none.
func tokenOf(values []string) string {
	if len(values) != 1 || len(values[0]) <= len(bearer) || !strings.EqualFold(values[0][:len(bearer)], bearer) {
		return ""
	}
	return strings.TrimLeft(values[0][len(bearer):], " ")
}

// Status makes an error of this package one of gRPC, which wraps it.
func Status(err error) error { return &statusError{err} }

type statusError struct{ error }

// GRPCStatus gives the status that the client sees.
func (e *statusError) GRPCStatus() *status.Status { return status.New(Code(e.error), e.Error()) }

// Unwrap gives the error of this package.
func (e *statusError) Unwrap() error { return e.error }

// Code gives the code of gRPC for an error of this package.
func Code(err error) codes.Code {
	switch reason, ok := ReasonOf(err); {
	case !ok:
		return codes.Internal
	case reason == Unauthenticated:
		return codes.Unauthenticated
	case reason == Forbidden:
		return codes.PermissionDenied
	default:
		return codes.ResourceExhausted
	}
}

// addressOf gives the IP address of a peer; the zero Addr for a unix socket.
func addressOf(at net.Addr) netip.Addr {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// tlsOf gives the state of the TLS of a connection; nil without TLS. rpc.Server adds an account to it.
func tlsOf(info credentials.AuthInfo) *tls.ConnectionState {
	if wrapped, ok := info.(interface{ Unwrap() credentials.AuthInfo }); ok {
		info = wrapped.Unwrap()
	}
	if secured, ok := info.(credentials.TLSInfo); ok {
		return &secured.State
	}
	return nil
}
