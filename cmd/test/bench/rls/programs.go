package rls

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/test/bench/compile"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// Programs is a temporary folder with the programs that this package builds. Call Remove
// when the scenes have ended.
type Programs struct{ dir string }

// Build compiles the programs of the scenes.
func Build(ctx context.Context, of []Scene) (*Programs, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	p := &Programs{dir}
	if err := p.build(ctx, slices.ContainsFunc(of, func(s Scene) bool { return s.reference })); err != nil {
		p.Remove()
		return nil, err
	}
	return p, nil
}

// Remove deletes the folder.
func (p *Programs) Remove() {
	_ = os.RemoveAll(p.dir) // Files that cannot be removed stay in the system's temporary folder.
}

// path returns the path of a program.
func (p *Programs) path(name string) string { return filepath.Join(p.dir, name) }

// build compiles the programs. The reference is a module of its own.
func (p *Programs) build(ctx context.Context, withReference bool) error {
	headgate, bench, err := compile.Modules(ctx)
	if err != nil {
		return err
	}
	programs := []compile.Program{
		{In: headgate, Path: "./cmd/headgate"}, {In: bench, Path: "./cmd/emptycall"}, {In: bench, Path: "./cmd/bare204"},
	}
	if withReference {
		programs = append(programs, compile.Program{In: filepath.Join(bench, "cmd", "ratelimit"), Path: "."})
	}
	return compile.Into(ctx, p.dir, programs...)
}

// place holds what a scene has started and opened, and a folder for its files.
type place struct {
	programs *Programs
	dir      string
	started  []*servers.Server
	closes   []func()
}

func (p *place) close() {
	for _, f := range p.closes {
		f()
	}
	for _, s := range p.started {
		s.Stop()
	}
	_ = os.RemoveAll(p.dir) // Files that cannot be removed stay in the system's temporary folder.
}

// redis starts a Redis server.
func (p *place) redis(ctx context.Context) (*servers.Server, error) {
	s, err := servers.Redis(ctx, p.dir)
	if err == nil {
		p.started = append(p.started, s)
	}
	return s, err
}

// serve starts a program that serves gRPC.
func (p *place) serve(ctx context.Context, words func(addr, port string) []string) (*servers.Server, error) {
	s, err := servers.GRPC(ctx, p.dir, words)
	if err == nil {
		p.started = append(p.started, s)
	}
	return s, err
}

// limit is above the number of calls of a run.
const limit = 4_000_000_000

// ours is headgate server with a tree of one limit, with a store: memory or the address of a Redis server.
// Its metrics are on.
func (p *place) ours(ctx context.Context, store string) (*servers.Server, error) {
	config := filepath.Join(p.dir, "headgate-"+strings.NewReplacer("/", "-", ":", "-").Replace(store)+".yaml")
	return p.serve(ctx, func(addr, _ string) []string {
		text := fmt.Sprintf("version: 1\nrules: []\nstore: %s\nstore_timeout: 10s\nserver: {grpc: %q, http: \"off\"}\n"+
			"admin: {listen: \"127.0.0.1:0\", health: \"off\"}\ndomains: {bench: {descriptors: [{key: user, limits: %d/1d}]}}\n",
			store, addr, limit)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return []string{"false"} // The server then ends at once, and its log says why.
		}
		return []string{p.programs.path("headgate"), "server", "--config", config}
	})
}

// empty is a server that decides nothing.
func (p *place) empty(ctx context.Context) (*servers.Server, error) {
	return p.serve(ctx, func(addr, _ string) []string { return []string{p.programs.path("emptycall"), addr} })
}

// reference is envoyproxy/ratelimit with its defaults, with the same limit, on a Redis server.
func (p *place) reference(ctx context.Context, redis string) (*servers.Server, error) {
	root := filepath.Join(p.dir, "limits")
	if err := os.MkdirAll(filepath.Join(root, "config"), 0o700); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("domain: bench\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: %d}}]\n", limit)
	if err := os.WriteFile(filepath.Join(root, "config", "bench.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return p.serve(ctx, func(_, port string) []string {
		return []string{
			"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "LOG_LEVEL=ERROR",
			"PORT=0", "GRPC_PORT=" + port, "DEBUG_PORT=0", "PROMETHEUS_ADDR=127.0.0.1:0",
			"USE_STATSD=false", "USE_PROMETHEUS=true", "RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=.",
			"RUNTIME_APPDIRECTORY=config", "RUNTIME_WATCH_ROOT=false", "BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp",
			"REDIS_URL=" + redis, p.programs.path("ratelimit"),
		}
	})
}

// meter reads the processor time of the servers of a side.
func meter(all ...*servers.Server) []contest.Meter {
	return []contest.Meter{{Name: serverCPU, Read: servers.CPUOf(all)}}
}
