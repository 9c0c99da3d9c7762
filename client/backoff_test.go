package client

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// attempts runs a client of some servers, none of which answers, except at one attempt. It gives the times of the attempts to
// open a stream.
func attempts(t *testing.T, servers, n, answered int) (at []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k := &Client{config: Config{Timeout: time.Hour}, notified: make(chan struct{})}
		k.config.Log = slog.New(slog.DiscardHandler)
		k.life, k.end = context.WithCancel(t.Context())
		refuse := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			if at = append(at, time.Since(began)); len(at) == n {
				k.end()
			}
			if len(at) == answered {
				return &accepted{ctx: ctx}, nil
			}
			return nil, status.Error(codes.Unavailable, "no server")
		}
		for range servers {
			conn, err := grpc.NewClient("passthrough:///127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithStreamInterceptor(refuse))
			if err != nil {
				t.Fatal(err)
			}
			k.conns = append(k.conns, conn)
			t.Cleanup(func() { _ = conn.Close() })
		}
		k.run()
		k.ended.Wait()
	})
	return at
}

// accepted is a stream that its server accepts, and drains at once.
type accepted struct {
	grpc.ClientStream

	ctx      context.Context
	notified bool
}

func (a *accepted) Context() context.Context   { return a.ctx }
func (*accepted) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (*accepted) SendMsg(any) error            { return nil }
func (*accepted) CloseSend() error             { return nil }

// RecvMsg implements grpc.ClientStream.
func (a *accepted) RecvMsg(m any) error {
	if a.notified {
		return io.EOF
	}
	a.notified = true
	*m.(*[]byte) = []byte{2 << 3, 1} // The field draining.
	return nil
}

// pauses gives the times between attempts.
func pauses(at []time.Duration) (all []time.Duration) {
	for i := range at[1:] {
		all = append(all, at[i+1]-at[i])
	}
	return all
}

// TestReconnects: the pause between attempts doubles from 10 ms to one second, and has a jitter of a half, so that the
// clients of a server that restarts do not come at one moment. A stream that was accepted begins again with the shortest one.
func TestReconnects(t *testing.T) {
	const n, answered = 600, 300
	for _, servers := range []int{1, 3} {
		pause, first := leastBackoff, servers-1 // The first attempt asks each server at once.
		all := pauses(attempts(t, servers, n, answered))
		var jitters []float64
		for i, got := range all {
			switch {
			case i < first, i == answered-1, i >= answered && i < answered+first: // The stream ends, and another one is opened at once.
				if got != 0 {
					t.Errorf("%d servers: attempt %d comes after %v, want it at once", servers, i+1, got)
				}
				pause = leastBackoff
				continue
			}
			if got < pause/2 || got >= pause*3/2 {
				t.Errorf("%d servers: attempt %d comes after %v, want %v to %v", servers, i+1, got, pause/2, pause*3/2)
			}
			jitters = append(jitters, float64(got)/float64(pause))
			pause = min(2*pause, time.Second)
		}
		slices.Sort(jitters)
		// Of 500 and more uniform values, each quarter has its share, but for one run in 10^9.
		for part := range 4 {
			if got := jitters[len(jitters)*(2*part+1)/8]; got < 0.5+float64(2*part)/8 || got > 0.5+float64(2*part+2)/8 {
				t.Errorf("%d servers: the jitter at %d/8 is %.2f", servers, 2*part+1, got)
			}
		}
	}
}

// TestClientsReconnectApart: of 100 clients that lose their server at one moment, few come together at any later one.
func TestClientsReconnectApart(t *testing.T) {
	const clients, window = 100, 100 * time.Millisecond
	var late []time.Duration // the 10th attempts, after pauses of 1 s
	for range clients {
		late = append(late, attempts(t, 1, 11, 0)[10])
	}
	slices.Sort(late)
	most := 0
	for i, at := range late {
		most = max(most, i+1-slices.IndexFunc(late, func(other time.Duration) bool { return other > at-window }))
	}
	if most > clients/4 {
		t.Errorf("%d of %d clients come within %v: %v", most, clients, window, late)
	}
}
