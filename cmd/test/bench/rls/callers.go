package rls

import (
	"context"
	"fmt"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// connections is the number of connections of all callers, as of an Envoy with eight workers.
const connections = 8

// users is the number of different keys.
const users = 1024

// callers are clients of one server.
type callers struct {
	clients []ratelimitv3.RateLimitServiceClient
	// requests have one descriptor each, and messages have perMessage.
	requests, messages []*ratelimitv3.RateLimitRequest
}

// perMessage is the number of descriptors in a long message.
const perMessage = 100

// dial connects callers with a server.
func (p *place) dial(addr string) (*callers, error) {
	c, closes, err := dial(addr)
	p.closes = append(p.closes, closes...)
	return c, err
}

// dial connects callers with a server. The functions close the connections, also after an error.
func dial(addr string) (c *callers, closes []func(), err error) {
	c = &callers{}
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, closes, fmt.Errorf("rls: %w", err)
		}
		closes = append(closes, func() { _ = conn.Close() })
		c.clients = append(c.clients, ratelimitv3.NewRateLimitServiceClient(conn))
	}
	for n := range users {
		c.requests = append(c.requests, request(n, 1))
	}
	for n := range users / perMessage {
		c.messages = append(c.messages, request(n*perMessage, perMessage))
	}
	return c, closes, nil
}

// request has descriptors of different users.
func request(first, n int) *ratelimitv3.RateLimitRequest {
	r := &ratelimitv3.RateLimitRequest{Domain: "bench"}
	for i := range n {
		r.Descriptors = append(r.Descriptors, &commonv3.RateLimitDescriptor{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: fmt.Sprintf("customer-%07d", first+i)}},
		})
	}
	return r
}

// run makes n calls, one after another.
func (c *callers) run(worker, n int) (t contest.Tally) {
	client := c.clients[worker%len(c.clients)]
	for i := range n {
		response, err := client.ShouldRateLimit(context.Background(), c.requests[(worker*31+i)%len(c.requests)])
		t = t.Add(tally(response, err))
	}
	return t
}

// runMessages decides n descriptors, 100 in a message.
func (c *callers) runMessages(worker, n int) (t contest.Tally) {
	client := c.clients[worker%len(c.clients)]
	for i := 0; n > 0; i++ {
		message := c.messages[(worker+i)%len(c.messages)]
		if n < perMessage {
			message = &ratelimitv3.RateLimitRequest{Domain: message.GetDomain(), Descriptors: message.GetDescriptors()[:n]}
		}
		of := len(message.GetDescriptors())
		one := tally(client.ShouldRateLimit(context.Background(), message))
		t = t.Add(contest.Tally{Allowed: of * one.Allowed, Denied: of * one.Denied, Failed: of * one.Failed, Err: one.Err})
		n -= of
	}
	return t
}

// tally counts an answer. An empty response allows.
func tally(response *ratelimitv3.RateLimitResponse, err error) contest.Tally {
	switch {
	case err != nil:
		return contest.Failure(err)
	case response.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT:
		return contest.Tally{Denied: 1}
	default:
		return contest.Tally{Allowed: 1}
	}
}
