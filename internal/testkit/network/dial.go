package network

import (
	"context"
	"fmt"
	"net"
	"testing"
)

// Links are the ways to several servers, by the servers' own addresses.
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

// Dial connects to a server by its own address, through its link. The nodes of a
// cluster tell clients their own addresses: a client that dials so cannot get
// around a link, and an address that has none is an error.
func (all Links) Dial(ctx context.Context, addr string) (net.Conn, error) {
	via := make(map[string]string, len(all))
	for own, link := range all {
		via[own] = link.Addr
	}
	return Dialer(via)(ctx, addr)
}

// Dialer gives a function that connects to an address by way of another one.
func Dialer(via map[string]string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		link, ok := via[addr]
		if !ok {
			return nil, fmt.Errorf("network: no link to %s: give it one, or the client gets around the faults", addr)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", link)
	}
}
