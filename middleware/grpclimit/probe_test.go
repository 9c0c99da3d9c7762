package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// TestProbes checks that an exempt health call passes fair share without a client name, and
// that another call does not.
func TestProbes(t *testing.T) {
	shared, err := guard.NewFairShare(2000, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{FairShare: shared})
	if err != nil {
		t.Fatal(err)
	}
	unary := grpclimit.Unary(g, grpclimit.Options{})
	call := func(method string) error {
		_, err := unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method},
			func(context.Context, any) (any, error) { return "reached", nil })
		return err
	}
	if err := call(grpc_health_v1.Health_Check_FullMethodName); err != nil {
		t.Errorf("the exempt health call was refused: %v", err)
	}
	if err := call("/shop.v1.Orders/Place"); err == nil {
		t.Error("another call passed without a client name")
	}
}
