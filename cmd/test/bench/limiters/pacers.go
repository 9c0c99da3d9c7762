package limiters

import (
	"context"
	"log/slog"
	"slices"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// Names of Headgate's pacers and of their peers.
const (
	PaceOff       = "headgate pace.Acquire, off"
	PaceEven      = "headgate pace.Acquire, even"
	PacePID       = "headgate pace.Acquire, pid"
	PaceFunc      = "headgate pace.AcquireFunc, off"
	PaceCallbacks = "headgate pace.AcquireFunc, even"
	XTimeAllow    = "x/time/rate Allow"
	XTimeWait     = "x/time/rate Wait"
	UberTake      = "uber-go/ratelimit Take"
)

// Callbacks is the number of callbacks of [PaceCallbacks] that wait at the same time. The
// number is large enough for a delayed machine.
const Callbacks = 4096

// Pacing delays calls to keep to a rate. Its Take waits for each call.
type Pacing interface {
	Lone
	// Drain takes all available permits, so that the next caller waits.
	Drain()
	Close()
}

// PacingMaker creates a pacer with a rate of perSecond. Each pacer can accumulate the
// permits of 10 ms.
type PacingMaker struct {
	Name string
	Kind contest.Kind
	New  func(perSecond int64) (Pacing, error)
}

// Pacers returns the pacers with the given names, in a fixed order.
func Pacers(names ...string) []PacingMaker {
	all := []PacingMaker{
		blockingPacers(PaceOff, pace.Off), blockingPacers(PaceEven, pace.EvenSpread), blockingPacers(PacePID, pace.PID),
		{PaceFunc, contest.Ours, func(perSecond int64) (Pacing, error) {
			p, err := NewPacer(perSecond, pace.Off)
			return callbackPacer{p}, err
		}},
		{PaceCallbacks, contest.Ours, func(perSecond int64) (Pacing, error) {
			p, err := NewPacer(perSecond, pace.EvenSpread)
			return callbacksPacer{p}, err
		}},
		{XTimeAllow, contest.Peer, func(perSecond int64) (Pacing, error) { return xTimeAllow{newXTimeWait(perSecond)}, nil }},
		{XTimeWait, contest.Peer, func(perSecond int64) (Pacing, error) { return newXTimeWait(perSecond), nil }},
		{UberTake, contest.Peer, func(perSecond int64) (Pacing, error) {
			slack := room(perSecond)
			return uberTake{uberLimiter: uberLimiter{uber.New(int(perSecond), uber.WithSlack(slack))}, slack: slack}, nil
		}},
	}
	return slices.DeleteFunc(all, func(m PacingMaker) bool { return !slices.Contains(names, m.Name) })
}

// room returns the permits of 10 ms.
func room(perSecond int64) int { return int(max(perSecond/100, 1)) }

// NewPacer returns a ready pacer of a single instance with a rate of perSecond.
func NewPacer(perSecond int64, smoothing pace.Smoothing) (*pace.Pacer, error) {
	plan, err := schedule.Even(perSecond, time.Second, 1, 0)
	if err != nil {
		return nil, err
	}
	p, err := pace.New(pace.Config{
		Provider: "provider", Source: pace.Static(plan), Smoothing: smoothing, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := p.Ready(context.Background()); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

type blockingPacer struct{ *pace.Pacer }

func blockingPacers(name string, smoothing pace.Smoothing) PacingMaker {
	return PacingMaker{name, contest.Ours, func(perSecond int64) (Pacing, error) {
		p, err := NewPacer(perSecond, smoothing)
		return blockingPacer{p}, err
	}}
}

// Take waits at most a second for each permit.
func (p blockingPacer) Take(n int) (t contest.Tally) {
	ctx := context.Background()
	for range n {
		countPermit(&t, p.Acquire(ctx, time.Second))
	}
	return t
}

// countPermit adds the result of one wait to the tally.
func countPermit(t *contest.Tally, err error) {
	if err != nil {
		t.Failed, t.Err = t.Failed+1, err
		return
	}
	t.Allowed++
}

// Drain takes all available permits.
func (p blockingPacer) Drain() { drain(p.Pacer) }

func drain(p *pace.Pacer) {
	for p.TryAcquire() {
		continue
	}
}

// callbackPacer requests one callback at a time, with a wait of 0.
type callbackPacer struct{ *pace.Pacer }

// Take receives each callback before it requests the next.
func (p callbackPacer) Take(n int) (t contest.Tally) {
	f := func(_ headgate.Instant, err error) { countPermit(&t, err) }
	for range n {
		p.AcquireFunc(1, 0, f)
	}
	return t
}

// Drain takes all available permits.
func (p callbackPacer) Drain() { drain(p.Pacer) }

type xTimeWait struct {
	noGoroutines

	limiter *rate.Limiter
}

func newXTimeWait(perSecond int64) xTimeWait {
	return xTimeWait{limiter: rate.NewLimiter(rate.Limit(perSecond), room(perSecond))}
}

// Take waits for each permit.
func (x xTimeWait) Take(n int) (t contest.Tally) {
	ctx := context.Background()
	for range n {
		countPermit(&t, x.limiter.Wait(ctx))
	}
	return t
}

// Drain takes all available tokens.
func (x xTimeWait) Drain() {
	for x.limiter.Allow() {
		continue
	}
}

type xTimeAllow struct{ xTimeWait }

// Take does not wait.
func (x xTimeAllow) Take(n int) contest.Tally { return xTime{x.limiter}.Take(n) }

type uberTake struct {
	uberLimiter
	noGoroutines

	slack int
}

// Drain takes the largest possible number of permits, because the peer cannot report how
// many permits are available.
func (u uberTake) Drain() { u.Take(u.slack) }
