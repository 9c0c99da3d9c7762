package network_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestClusterBehindLinks checks that a client of a cluster uses only links, also when a node
// redirects the client to another node's own address.
func TestClusterBehindLinks(t *testing.T) {
	c := redis.StartCluster(t, 3, 0)
	links := network.NewLinks(t, c.Addrs()...)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  c.Addrs()[:1],
		DisableCache: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return links.Dial(ctx, addr)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	set := func(key string, wait time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		return client.Do(ctx, client.B().Set().Key(key).Value("x").Build()).Error()
	}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if err := set(key, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for addr, link := range links {
		if link.Accepted() == 0 {
			t.Errorf("no connection to %s used its link", addr)
		}
	}
	links[c.MasterOf(c.SlotOf("a")).Addr].HalfOpen()
	if err := set("a", 100*time.Millisecond); err == nil {
		t.Error("a silent link forwards an answer")
	}
	other := "b"
	for c.MasterOf(c.SlotOf(other)) == c.MasterOf(c.SlotOf("a")) {
		other += "b"
	}
	if err := set(other, 10*time.Second); err != nil {
		t.Errorf("the other links have no fault, and return %v", err)
	}
}
