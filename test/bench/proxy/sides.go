package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/contest"
)

// ours returns the measured configurations of Headgate's proxy. Each text takes the admin
// address, the health address, the proxy address and the URL of the upstream.
func ours() []configuration {
	return []configuration{
		{"headgate proxy, one rule", bar, true, oneRule},
		{"headgate proxy, no rule", 0, false, noRule},
	}
}

type configuration struct {
	name    string
	bar     float64
	decides bool
	text    string
}

// The configuration files. head is common to all. The rule of oneRule counts each request
// by the address of its client, and allows all requests.
const (
	head = `version: 1
store: memory
admin: {listen: %q, health: %q}
proxy:
  listen: %q
  upstream: %q
`
	noRule = head + `rules: []
`
	oneRule = head + `rules:
  - name: everyone
    match: {path: /*}
    key: [ip]
    limits: ["100000000/1s"]
`
)

// startSides starts the bare proxies and Headgate's proxies. The first side is the
// reference for the ratios: the bare proxy with a pool, the fastest without decisions.
func startSides(ctx context.Context, dir, upstream string) ([]*process, error) {
	var started []*process
	for _, b := range []struct{ name, pool string }{
		{"bare ReverseProxy", "--pool=true"}, {"bare ReverseProxy, without BufferPool", "--pool=false"},
	} {
		p, err := start(ctx, b.name, "", dir, "bareproxy", "--upstream", upstream, b.pool)
		if err != nil {
			return started, err
		}
		p.kind = contest.Peer
		started = append(started, p)
	}
	headgates, err := startHeadgate(ctx, dir, upstream, ours())
	return append(started, headgates...), err
}

// startHeadgate starts Headgate's proxy with each of the configurations. After an error, it
// returns the processes that it has started.
func startHeadgate(ctx context.Context, dir, upstream string, with []configuration) ([]*process, error) {
	var started []*process
	for i, c := range with {
		addresses, err := freeAddresses(3)
		if err != nil {
			return started, err
		}
		file := filepath.Join(dir, fmt.Sprintf("headgate-%d.yaml", i))
		text := fmt.Sprintf(c.text, addresses[0], addresses[1], addresses[2], upstream)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return started, err
		}
		p, err := start(ctx, c.name, "http://"+addresses[2], dir, "headgate", "proxy", "--config", file)
		if err != nil {
			return started, err
		}
		p.kind, p.bar, p.decides, p.health = contest.Ours, c.bar, c.decides, "http://"+addresses[1]
		started = append(started, p)
	}
	return started, nil
}

// freeAddresses returns loopback addresses with ports that are free at the moment.
func freeAddresses(n int) ([]string, error) {
	listeners := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // The listener has no connection that could be lost.
		}
	}()
	addresses := make([]string, n)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // The listener is closed immediately.
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		addresses[i] = l.Addr().String()
	}
	return addresses, nil
}
