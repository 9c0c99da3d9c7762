package grpclimit

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/fields"
)

// wire is a fake of the connection that interceptors use.
type wire struct{ grpc.ServerTransportStream }

func (wire) SetHeader(metadata.MD) error  { return nil }
func (wire) SetTrailer(metadata.MD) error { return nil }

// BenchmarkUnary measures the cost of the interceptor per call.
func BenchmarkUnary(b *testing.B) {
	ctx := grpc.NewContextWithServerTransportStream(incomingCall(b.Context()), wire{})
	info := &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Orders/Place"}
	handler := func(context.Context, any) (any, error) { return nil, nil } //nolint:nilnil // The response does not matter.
	for name, c := range map[string]struct {
		limit headgate.Limit
		style Style
	}{
		"allowed/draft": {headgate.Limit{Count: 1 << 40, Per: time.Hour}, fields.Draft},
		"allowed/none":  {headgate.Limit{Count: 1 << 40, Per: time.Hour}, fields.None},
		"refused/draft": {headgate.Limit{Per: time.Hour}, fields.Draft},
	} {
		b.Run(name, func(b *testing.B) {
			intercept := Unary(orders(b, c.limit), Options{Style: c.style})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(ctx, nil, info, handler)
			}
		})
	}
}
