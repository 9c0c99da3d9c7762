package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/contest"
)

// ours are the configurations of Headgate's proxy that are measured. Each is
// filled with two addresses to listen on, the admin's and health's, and the
// proxy's, and with the upstream.
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

// head is what all have in common. The rule below counts every request under its
// client's address and allows all of them.
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

// startSides starts the bare proxies and ours. The first is the one that ours are
// held against: it saves what can be saved without deciding anything.
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
	for i, c := range ours() {
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
		p.kind, p.bar, p.decides = contest.Ours, c.bar, c.decides
		started = append(started, p)
	}
	for _, p := range started {
		if err := p.answers(ctx); err != nil {
			return started, err
		}
	}
	return started, nil
}

// freeAddresses finds ports on loopback that nobody listens on at the moment.
func freeAddresses(n int) ([]string, error) {
	listeners := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // Nobody has connected.
		}
	}()
	addresses := make([]string, n)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		addresses[i] = l.Addr().String()
	}
	return addresses, nil
}
