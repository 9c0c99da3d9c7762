package app

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// given is a source whose domains a test sends.
type given struct {
	domains chan []guard.Domain
	faults  chan error
	refused chan error // the answer to each of domains
}

func (g *given) Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error {
	for {
		select {
		case d := <-g.domains:
			g.refused <- apply(d)
		case err := <-g.faults:
			fault(err)
			g.refused <- err
		case <-ctx.Done():
			return nil
		}
	}
}

func limitOf(name string, count int64) []guard.Domain {
	p := guard.LeafPolicy(headgate.FixedWindow, headgate.Limit{Count: count, Per: time.Hour})
	return []guard.Domain{{
		Name: name, Fallback: guard.FallbackError,
		Descriptors: []guard.Descriptor{{Key: "k", Leaf: &guard.Leaf{Policies: []headgate.Policy{p}}}},
	}}
}

// TestSourceOfDomains tells the life of an instance whose domains come from a source.
func TestSourceOfDomains(t *testing.T) {
	read := func() (*config.Config, error) {
		return config.Parse("f", []byte("version: 1\nrules: []\nmax_memory: 16MiB\nserver: {grpc: '127.0.0.1:0', http: off}\nadmin: {listen: off, health: off}\n"))
	}
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	source := &given{make(chan []guard.Domain), make(chan error), make(chan error)}
	go func() { source.faults <- errors.New("not yet") }() // The start waits for a first answer.
	go func() { <-source.refused }()
	i, err := Start(t.Context(), Options{Config: c, Server: true, Domains: source, Load: read, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ask := askOf(t, i.addresses.GRPC)
	for _, step := range []struct {
		why  string
		do   func() error
		want string
	}{
		{"before the first domains", func() error { return nil }, "no rate limit configuration loaded"},
		{"the first domains", func() error { source.domains <- limitOf("d", 5); return <-source.refused }, "5"},
		{"a reload of the file keeps them", i.Reload, "5"},
		{"a changed limit", func() error { source.domains <- limitOf("d", 7); return <-source.refused }, "7"},
		{"a fault keeps it", func() error { source.faults <- errors.New("broken"); <-source.refused; return nil }, "7"},
		{"another domain alone", func() error { source.domains <- limitOf("e", 9); return <-source.refused }, "0"},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.why, err)
		}
		if got := ask("d"); got != step.want {
			t.Errorf("%s: the limit is %s, want %s", step.why, got, step.want)
		}
	}
	source.domains <- append(limitOf("d", 1), limitOf("d", 2)...)
	if err := <-source.refused; err == nil || !strings.Contains(err.Error(), "there twice") {
		t.Errorf("a domain twice gives %v", err)
	}
	if got := ask("e"); got != "9" {
		t.Errorf("after refused domains the limit is %s, want 9", got)
	}
}

// askOf gives a function that asks about one hit, and returns the limit or the error's text.
func askOf(t *testing.T, at string) func(domain string) string {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	return func(domain string) string {
		r, err := client.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}},
		}}})
		if err != nil {
			return status.Convert(err).Message()
		}
		return strconv.Itoa(int(r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit()))
	}
}
