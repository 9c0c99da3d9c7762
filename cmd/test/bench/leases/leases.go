// Package leases measures headgate server with many holders of capacity leases beside a bare echo over equal streams. A program sends
// the reports of all holders, and is not measured.
package leases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/compile"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// Size is the size of a run.
type Size struct {
	Streams, PerStream, Resources int
	// Every is the time between two reports of a holder.
	Every time.Duration
	// Length is the length of a lease. The holders of a round must not lose theirs during the other sides of the round.
	Length time.Duration
	// A round measures each side for Measure, after Warm.
	Rounds        int
	Warm, Measure time.Duration
}

// Full is the size of the bars.
func Full() Size {
	return Size{
		Streams: 500, PerStream: 100, Resources: 10, Every: 5 * time.Second, Length: time.Minute,
		Rounds: 5, Warm: 3 * time.Second, Measure: 10 * time.Second,
	}
}

// Names of the sides of a round.
const (
	// Steady holders always want the same amount.
	Steady = "leases, steady"
	// Drifting holders want up to 5 % more or less in each report.
	Drifting = "leases, drifting"
	// Echo is the bare echo.
	Echo = "echo"
)

// Figure is one side of one round.
type Figure struct {
	Side string
	// Cores is the processor time of the server by second, and Load that of the program that sends.
	Cores, Load float64
	// Reports and Answers were counted, and Pushes without a report.
	Reports, Answers, Pushes int64
	P50, P99                 time.Duration
	// BytesPerHolder is the resident memory beyond that of the idle server. HasOfCent says how much of what they want holders have.
	BytesPerHolder, HasOfCent float64
}

// Run measures all rounds. tell gets each figure.
func Run(ctx context.Context, size Size, tell func(round int, f Figure)) error {
	dir, err := os.MkdirTemp("", "headgate-leases-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(ctx, dir); err != nil {
		return err
	}
	ours, err := serve(ctx, dir, size)
	if err != nil {
		return err
	}
	defer ours.Stop()
	bare, err := servers.GRPC(ctx, dir, func(addr, _ string) []string { return []string{filepath.Join(dir, "leases"), "--echo", addr} })
	if err != nil {
		return err
	}
	defer bare.Stop()
	idle, err := ours.Resident()
	if err != nil {
		return err
	}
	r := &run{size: size, ours: ours, bare: bare, idle: idle}
	if r.leases, err = newLoad(ctx, ours.Addr, size, false); err != nil {
		return err
	}
	defer r.leases.close()
	if r.echo, err = newLoad(ctx, bare.Addr, size, true); err != nil {
		return err
	}
	defer r.echo.close()
	return r.rounds(ctx, tell)
}

// build compiles the programs.
func build(ctx context.Context, dir string) error {
	headgate, bench, err := compile.Modules(ctx)
	if err != nil {
		return err
	}
	return compile.Into(ctx, dir, compile.Program{In: headgate, Path: "./cmd/headgate"}, compile.Program{In: bench, Path: "./cmd/leases"})
}

// token is that of the caller. Its digest is in the configuration.
const token = "bench"

// serve starts headgate server, with authentication and metrics. Four fifths of what all holders want are there.
func serve(ctx context.Context, dir string, size Size) (*servers.Server, error) {
	config := filepath.Join(dir, "leases.yaml")
	capacity := int64(size.Streams*size.PerStream/size.Resources) * meanWants / 1000 * 4 / 5
	return servers.GRPC(ctx, dir, func(addr, _ string) []string {
		text := fmt.Sprintf("version: 1\nadmin: {listen: \"127.0.0.1:0\", health: \"off\"}\n"+
			"server:\n  grpc: {address: %q, auth: token}\n  http: \"off\"\n  callers: [{name: web, tokens: [%q], scopes: [lease]}]\n"+
			"lease:\n  length: %s\n  refresh: %s\n  resources: [{match: \"db/*\", capacity: %d/s}]\n",
			addr, digest(token), size.Length, size.Every, max(capacity, 1))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return []string{"false"} // The server then ends at once, and its log says why.
		}
		return []string{filepath.Join(dir, "headgate"), "server", "--config", config}
	})
}
