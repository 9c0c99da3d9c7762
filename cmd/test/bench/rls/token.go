package rls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// barToken is the processor time of a unary call with a token / one without auth.
const barToken = 1.15

const (
	sideToken  = "headgate server, token"
	benchToken = "hg_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// guarded is headgate server with Envoy's domain, whose callers need a token.
func (p *place) guarded(ctx context.Context) (*servers.Server, error) {
	config, digest := filepath.Join(p.dir, "guarded.yaml"), sha256.Sum256([]byte(benchToken))
	return p.serve(ctx, func(addr, _ string) []string {
		text := fmt.Sprintf("version: 1\nrules: []\nserver: {grpc: {address: %q, auth: token}, http: \"off\", callers: [{name: bench, "+
			"tokens: [\"sha256:%s\"], scopes: [decide]}]}\nadmin: {listen: \"127.0.0.1:0\", health: \"off\"}\n"+
			"domains: {bench: {descriptors: [{key: user, limits: %d/1d}]}}\n", addr, hex.EncodeToString(digest[:]), limit)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return []string{"false"} // The server then ends at once, and its log says why.
		}
		return []string{p.programs.path("headgate"), "server", "--config", config}
	})
}

// tokens compares unary calls with a token with those of a server without auth.
func tokens(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, err := p.guarded(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	c, err := p.dial(s.Addr)
	if err != nil {
		return contest.Result{}, err
	}
	authorized := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+benchToken)
	ours := contest.Side{Name: sideToken, Kind: contest.Ours, Meters: meter(s), Run: func(worker, n int) (t contest.Tally) {
		of := c.clients[worker%len(c.clients)]
		for i := range n {
			var response *ratelimitv3.RateLimitResponse
			response, err := of.ShouldRateLimit(authorized, c.requests[(worker*31+i)%len(c.requests)])
			t = t.Add(tally(response, err))
		}
		return t
	}}
	other, err := p.ours(ctx, "memory")
	if err != nil {
		return contest.Result{}, err
	}
	open, err := p.side(sideOurs, contest.Peer, other)
	if err != nil {
		return contest.Result{}, err
	}
	race := contest.Contest{
		Name: "server, token", Workers: 64, Least: contest.Batch, Sides: []contest.Side{ours, open},
		About: fmt.Sprintf("processor time of the server for a unary call with a token, beside one without auth; memory store, "+
			"metrics on, 64 callers, %d connections", connections),
		Questions: []contest.Question{{Of: sideToken, Against: sideOurs, Meter: serverCPU, Bar: barToken}},
	}
	return race.Measure(ctx, e)
}
