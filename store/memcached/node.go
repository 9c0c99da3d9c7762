package memcached

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/meta"
)

// node is one server: its client, its clock, its breaker and its counters.
type node struct {
	addr    string
	seed    uint64
	client  *meta.Client
	breaker *breaker.Breaker
	log     *slog.Logger
	names   func() string // of the fallbacks; may be nil
	slack   time.Duration
	clock   clock
	end     context.CancelFunc // of follow

	decisions, faults, conflicts, exhausted atomic.Uint64
	last                                    breaker.LastFailure
	// reported is the last answer with the server's statistics.
	reported atomic.Pointer[report]
}

func newNode(addr string, c *Config) (*node, error) {
	client, err := meta.New(meta.Config{
		Addr: addr, Connections: c.Connections, Dial: c.Dial, DialTimeout: c.DialTimeout, MaxValue: maxItem,
	})
	if err != nil {
		return nil, err
	}
	settings := c.Breaker
	if settings.Jitter == nil {
		settings.Jitter = rand.Float64
	}
	n := &node{addr: addr, seed: seedOf(addr), client: client, breaker: breaker.New(settings), log: c.Log, names: c.Fallbacks, slack: slack}
	if err := n.clock.open(c.Clock); err != nil {
		return nil, err
	}
	if c.Clock != nil {
		n.slack = slackOfTests
	}
	return n, nil
}

// do sends requests to the server, unless its breaker is open. doing is the purpose, for errors.
func (n *node) do(ctx context.Context, doing string, asked []meta.Request, answers []meta.Response) error {
	if err := n.guarded(ctx, doing, func() error { return n.client.Do(ctx, asked, answers) }); err != nil {
		return err
	}
	if err := unread(n.addr, asked, answers); err != nil {
		return n.failed(err)
	}
	return nil
}

// failed counts and returns the error of a call.
func (n *node) failed(err error) error {
	n.faults.Add(1)
	n.last.Note(time.Now(), err)
	return err
}

// guarded calls ask unless the breaker is open, and reports the result to the breaker.
func (n *node) guarded(ctx context.Context, doing string, ask func() error) error {
	if err := ctx.Err(); err != nil {
		return couldNot(doing, err) // No request was sent, so the error says nothing about the server.
	}
	began := n.clock.mono()
	if !n.breaker.Allow(began) {
		n.faults.Add(1)
		return unavailable(n.addr)
	}
	err := ask()
	if err == nil {
		state, changed := n.breaker.Succeeded(began, n.clock.mono())
		n.turned(state, changed, nil)
		return nil
	}
	n.faults.Add(1)
	if says(err) {
		n.last.Note(time.Now(), err)
		state, changed := n.breaker.Failed(began, n.clock.mono())
		n.turned(state, changed, err)
	} else {
		n.breaker.Unknown(began)
	}
	return couldNot(doing, err)
}

// says reports whether an error says something about the server. A cancelled caller, a closed
// client and an invalid request do not.
func says(err error) bool {
	var fault *meta.Fault
	return errors.As(err, &fault) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, meta.ErrClosed) && !errors.Is(err, meta.ErrBusy)
}

// turned logs that the breaker has opened or closed.
func (n *node) turned(state BreakerState, changed bool, err error) {
	switch {
	case !changed || n.log == nil:
	case state == breaker.Closed:
		n.log.Info("memcached server answers again", "server", n.addr)
	default:
		attrs := []any{"server", n.addr, "error", err}
		if n.names != nil {
			attrs = append(attrs, "fallbacks", n.names())
		}
		n.log.Warn("memcached server does not answer: fallbacks decide for its keys until it does", attrs...)
	}
}
