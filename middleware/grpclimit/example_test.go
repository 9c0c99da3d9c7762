package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// Each client of this server may call its health service twice an hour.
func Example() {
	g, err := twiceAnHour()
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
		grpc.ChainStreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	client := grpc_health_v1.NewHealthClient(conn)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-client-id", "north")
	for range 3 {
		resp, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			fmt.Println(resp.GetStatus())
			continue
		}
		refused := status.Convert(err)
		fmt.Println(refused.Code())
		for _, detail := range refused.Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("again in", info.GetRetryDelay().AsDuration().Round(time.Minute))
			}
		}
	}

	_ = conn.Close()
	server.Stop()
	<-served
	// Output:
	// SERVING
	// SERVING
	// ResourceExhausted
	// again in 30m0s
}

func twiceAnHour() (*guard.Guard, error) {
	store, err := memory.New(memory.Config{})
	if err != nil {
		return nil, err
	}
	client, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "health", Match: rule.Match{Path: grpc_health_v1.Health_Check_FullMethodName}, Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Hour}}},
	}}})
}

// Clients share the capacity of a server. No client must be configured, and no store is
// needed.
func ExampleUnary_fairShare() {
	share, err := guard.NewFairShare(2000, "header:X-Client-Id") // Calls per second.
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(guard.Config{FairShare: share})
	if err != nil {
		fmt.Println(err)
		return
	}
	unary := grpclimit.Unary(g, grpclimit.Options{})
	_ = grpc.NewServer(grpc.UnaryInterceptor(unary))

	// Call once with the metadata x-client-id, and once without.
	for _, pairs := range [][]string{{"x-client-id", "north"}, nil} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(pairs...))
		_, err := unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Orders/Place"},
			func(context.Context, any) (any, error) { return "served", nil })
		fmt.Printf("%v: %q\n", status.Code(err), status.Convert(err).Message())
	}
	// Output:
	// OK: ""
	// ResourceExhausted: "The request names no client, and the policy fair_share shares among clients: name one by header:X-Client-Id."
}
