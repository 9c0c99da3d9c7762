package network

import (
	"context"
	"fmt"
	"net"
	"testing"
)

// Links maps the addresses of servers to their links.
type Links map[string]*Link

// NewLinks opens a link to each of the addresses.
func NewLinks(tb testing.TB, addrs ...string) Links {
	tb.Helper()
	all := Links{}
	for _, addr := range addrs {
		all[addr] = New(tb, addr)
	}
	return all
}

// Dial connects to a server's own address through its link. Cluster nodes send clients to other
// nodes by their own addresses, and a client with this Dial still uses the links. An address
// without a link is an error.
func (all Links) Dial(ctx context.Context, addr string) (net.Conn, error) {
	via := make(map[string]string, len(all))
	for own, link := range all {
		via[own] = link.Addr
	}
	return Dialer(via)(ctx, addr)
}

// Dialer returns a function that dials another address in place of a known address.
func Dialer(via map[string]string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		link, ok := via[addr]
		if !ok {
			return nil, fmt.Errorf("network: no link to %s: add one, or the client bypasses the faults", addr)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", link)
	}
}
