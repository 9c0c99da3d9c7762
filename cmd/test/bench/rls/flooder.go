package rls

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/test/bench/openloop"
)

const (
	// floodRate is the number of calls of the flooding caller in a second. All processes of the scene then take about
	// two thirds of two cores. At 10,000 calls, they take more than three quarters, and the latencies show how long
	// processes wait for a core.
	floodRate = 5_000
	// floodStreams is the most calls in flight on a connection of the flooding caller. It is also the bound of
	// headgate server in this scene, so that no call waits at the client. All connections together then have
	// 8,000 calls, which take about 150 MB of the client.
	floodStreams = 1000
	// floodGrace limits the time for the last answers of a turn.
	floodGrace = 10 * time.Second
)

// flooded is what the flooding caller got in one turn.
type flooded struct {
	Calls   int `json:"calls"`
	Allowed int `json:"allowed"`
	// Refused is the number of calls with the code RESOURCE_EXHAUSTED.
	Refused int `json:"refused"`
	// Took is the time from before the first call to the last answer.
	Took time.Duration `json:"took_ns"`
}

// rate is the number of calls that were answered in a second.
func (f *flooded) rate() float64 { return float64(f.Calls) / f.Took.Seconds() }

// Flood makes the calls of the flooding caller in the scene "server, flood" to the server at addr. Each line of
// in has the number of calls in a turn. After a turn, Flood writes a line of JSON to out. Flood returns at the end of in.
func Flood(ctx context.Context, addr string, in io.Reader, out io.Writer) error {
	c, closes, err := dial(addr)
	defer func() {
		for _, f := range closes {
			f()
		}
	}()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return fmt.Errorf("rls: the number of calls in a turn: %w", err)
		}
		turn, err := c.flood(authorized(ctx, 0), n, time.Second/floodRate)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(turn); err != nil {
			return err
		}
	}
	return lines.Err()
}

// flood makes n calls, one each interval. Calls begin when they are due, whether or not earlier calls were answered.
func (c *callers) flood(ctx context.Context, n int, interval time.Duration) (flooded, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n)*interval+floodGrace,
		errors.New("rls: the flood got no answers in time"))
	defer cancel()
	inFlight := make([]atomic.Int64, len(c.clients))
	var got floodAnswers
	var calls sync.WaitGroup
	began := time.Now()
	err := openloop.Each(ctx, n, interval, func(i int, _ time.Time) error {
		of := i % len(c.clients)
		if inFlight[of].Add(1) > floodStreams {
			return fmt.Errorf("rls: the flood has %d calls in flight on one connection: run this scene on a faster machine", floodStreams)
		}
		calls.Go(func() {
			response, err := c.clients[of].ShouldRateLimit(ctx, c.requests[i%len(c.requests)])
			inFlight[of].Add(-1)
			got.count(i, response, err)
		})
		return nil
	})
	if err != nil {
		cancel() // The calls in flight end.
	}
	calls.Wait()
	if failed := got.failure.Load(); failed != nil && err == nil {
		err = *failed
	}
	return flooded{n, int(got.allowed.Load()), int(got.refused.Load()), time.Since(began)}, err
}

// floodAnswers counts the answers to a flood. It is safe for concurrent use.
type floodAnswers struct {
	allowed, refused atomic.Int64
	failure          atomic.Pointer[error] // one of the failures
}

// count counts the answer to call i.
func (a *floodAnswers) count(i int, response *ratelimitv3.RateLimitResponse, err error) {
	switch {
	case status.Code(err) == codes.ResourceExhausted:
		a.refused.Add(1)
	case tally(response, err).Allowed == 1:
		a.allowed.Add(1)
	default:
		wrong := fmt.Errorf("rls: call %d of the flood: got %v, %w", i, response, err)
		a.failure.Store(&wrong)
	}
}

// authorized adds the token of a caller.
func authorized(ctx context.Context, caller int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tokenOf(caller))
}

// tokenOf gives the token of a caller. Caller 0 floods.
func tokenOf(caller int) string { return "hg_" + strings.Repeat(string(rune('A'+caller)), 43) }

// flooder is a process of the flooding caller. Its own scheduler then does not delay the calls that are measured.
type flooder struct {
	turns   io.WriteCloser
	results *json.Decoder
}

// startFlood starts a flooding caller of the server at addr. The process is this program, with --flood-server.
func (p *place) startFlood(ctx context.Context, addr string) (*flooder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process := exec.CommandContext(ctx, self, "--flood-server", addr) //nolint:gosec // The program is this one.
	process.Stderr = os.Stderr
	turns, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	results, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	p.closes = append(p.closes, func() {
		_ = turns.Close()  // The process ends, also when this program is killed.
		_ = process.Wait() // A failure is the error of end.
	})
	return &flooder{turns, json.NewDecoder(results)}, nil
}

// begin begins a turn of n calls.
func (f *flooder) begin(n int) error {
	if _, err := fmt.Fprintln(f.turns, n); err != nil {
		return fmt.Errorf("rls: the process of the flood ended: its error is above: %w", err)
	}
	return nil
}

// end waits for the end of the turn.
func (f *flooder) end() (turn flooded, err error) {
	if err := f.results.Decode(&turn); err != nil {
		return turn, fmt.Errorf("rls: the process of the flood ended: its error is above: %w", err)
	}
	return turn, nil
}
