package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// load is what the load generator sends. The zero value is GET requests on 64 connections for
// answers of 1 KiB.
type load struct {
	path string
	// connections is their number. 0 means 64.
	connections int
	// header is an additional header field of each request, such as "Connection: close".
	header string
	// least is the shortest time of a load, for loads that begin slowly.
	least time.Duration
	// script is the name of a Lua script for wrk in configs. "" without one.
	script string
	// refused means that limits refuse the requests.
	refused bool
	// http2 selects HTTP/2 over TLS, with 16 connections of 8 concurrent requests.
	http2 bool
	// grpc selects unary calls of grpc-go over HTTP/2 without TLS, by 64 callers on 8 connections.
	grpc bool
	// half selects a constant rate: half of the rate that nginx reaches with the same load.
	half bool
	// rate is the constant rate, in requests a second. 0 sends as fast as the answers come.
	rate float64
}

// The load that is generated unless a scene changes it.
const (
	threads          = 2
	connections      = 64
	http2Connections = 16
	streams          = 8
)

// report holds the figures of a load generator.
type report struct {
	// requests includes the failed requests.
	requests int
	// failed is the number of responses with a status of 400 or more.
	failed   int
	took     time.Duration
	p50, p99 time.Duration
}

// size returns the size of the upstream's answer.
func (l *load) size() int64 {
	switch l.path {
	case pathLarge:
		return 100 << 10
	case pathHuge:
		return 10 << 20
	default:
		return 1 << 10
	}
}

// The paths of the command upstream.
const (
	pathLarge = "/100k"
	pathHuge  = "/10m"
	pathSlow  = "/slow"
)

// patience multiplies the time of a load that has got no answer.
const patience = 10

// concurrent returns the number of concurrent requests.
func (l *load) concurrent() int {
	switch {
	case l.connections > 0:
		return l.connections
	case l.http2:
		return http2Connections * streams
	default:
		return connections
	}
}

// String describes the load.
func (l *load) String() string {
	switch {
	case l.rate > 0:
		return fmt.Sprintf("%.0f requests a second, half of what nginx reaches, measured from their due times", l.rate)
	case l.grpc:
		return fmt.Sprintf("%d callers on %d connections", l.concurrent(), grpcConnections)
	case l.http2:
		return fmt.Sprintf("h2load -t%d -c%d -m%d", threads, http2Connections, streams)
	}
	text := fmt.Sprintf("wrk -t%d -c%d", threads, l.concurrent())
	if l.header != "" {
		text += fmt.Sprintf(" -H %q", l.header)
	}
	return text
}

// send loads the server at url for about d, in whole seconds, and checks the answers. dir is
// a folder for temporary files.
func (l *load) send(ctx context.Context, url, dir string, d time.Duration) (report, error) {
	seconds := max(1, int(d.Round(time.Second).Seconds()))
	generate := l.wrk
	if l.http2 {
		generate = l.h2load
	}
	saw, err := generate(ctx, url+l.path, dir, seconds)
	if err == nil && saw.requests == 0 {
		// On a busy machine all connections of a quick run may take more than a second for the TLS handshake.
		saw, err = generate(ctx, url+l.path, dir, patience*seconds)
	}
	if err != nil {
		return report{}, err
	}
	return saw, l.check(saw)
}

// check judges the number of failed requests.
func (l *load) check(saw report) error {
	switch {
	case saw.requests == 0:
		return errors.New("no request was answered")
	case !l.refused && saw.failed > 0:
		return fmt.Errorf("%d of %d requests failed, want none", saw.failed, saw.requests)
	case l.refused && saw.failed*100 <= saw.requests*95:
		return fmt.Errorf("%d of %d requests were refused, want more than 95 %%", saw.failed, saw.requests)
	}
	return nil
}

// writeScript copies a script to a file, because wrk reads no script from standard input.
func writeScript(name, dir string) (string, error) {
	text, err := configs.ReadFile("configs/" + name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, text, 0o600)
}
