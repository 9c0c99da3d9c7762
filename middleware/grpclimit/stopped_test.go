package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
)

// ender is a stage that ends calls, and tells how they end.
type ender struct {
	entered chan guard.Handle
	left    chan guard.Outcome
}

func (ender) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "ender"}} }

func (ender) Facts() guard.Facts { return guard.Facts{Ends: true} }

func (e ender) Enter(p *guard.Pass) headgate.Decision {
	e.entered <- p.Handle()
	return headgate.Decision{}
}

func (e ender) Leave(_ *guard.Pass, o *guard.Outcome) { e.left <- *o }

// TestStoppedCalls: a call that a stage ends fails with UNAVAILABLE, and its client learns when to retry. An error of the
// service's own stays.
func TestStoppedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(context.Context) error
		want  codes.Code
	}{
		"the context's error":    {context.Context.Err, codes.Unavailable},
		"an error that wraps":    {func(ctx context.Context) error { return fmt.Errorf("query: %w", ctx.Err()) }, codes.Unavailable},
		"a status":               {func(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }, codes.Unavailable},
		"an error of its own":    {func(context.Context) error { return status.Error(codes.NotFound, "no such order") }, codes.NotFound},
		"an answer all the same": {func(context.Context) error { return nil }, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			e := ender{make(chan guard.Handle, 1), make(chan guard.Outcome, 1)}
			g, err := guard.New(guard.Config{Stages: []guard.Stage{e}})
			if err != nil {
				t.Fatal(err)
			}
			client := serve(t, g, &service{called: func(ctx context.Context) error {
				(<-e.entered).End(errors.New("stop"))
				<-ctx.Done()
				return c.fails(ctx)
			}}, grpclimit.Options{})
			check := func(kind string, trailer metadata.MD, err error) {
				t.Helper()
				want := ""
				if c.want == codes.Unavailable {
					want = "[1000]"
				}
				got := ""
				if values := trailer.Get("grpc-retry-pushback-ms"); len(values) > 0 {
					got = fmt.Sprint(values)
				}
				if status.Code(err) != c.want || got != want {
					t.Errorf("%s: the client gets %v and the pushback %q, want %v and %q", kind, err, got, c.want, want)
				}
				if o := <-e.left; c.want == codes.Unavailable && (o.End != guard.Stopped || o.Status != int(codes.Unavailable)) {
					t.Errorf("%s: the outcome is %+v", kind, o)
				}
			}
			_, trailer, err := call(with(t), client)
			check("call", trailer, err)
			stream, err := client.StreamingOutputCall(with(t), &testgrpc.StreamingOutputCallRequest{}, grpc.Trailer(&trailer))
			if err == nil {
				if _, err = stream.Recv(); err != nil && err.Error() == "EOF" {
					err = nil
				}
			}
			check("stream", stream.Trailer(), err)
		})
	}
}
