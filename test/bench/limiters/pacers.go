package limiters

import (
	"context"
	"log/slog"
	"slices"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/test/bench/contest"
)

// Names of our pacers, and of the peers beside them.
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

// Callbacks is how many of [PaceCallbacks] wait at once: enough while the machine is late.
const Callbacks = 4096

// Pacing lets calls go so that they keep to a rate: Take of a [Lone] waits for each.
type Pacing interface {
	Lone
	// Drain takes what is there, so that who comes next waits.
	Drain()
	Close()
}

// PacingMaker makes a side that keeps to so many a second. All have room for what comes
// in 10 ms.
type PacingMaker struct {
	Name string
	Kind contest.Kind
	New  func(perSecond int64) (Pacing, error)
}

// Pacers gives those of ours and of the peers that have one of the names.
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

// room is what comes in 10 ms.
func room(perSecond int64) int { return int(max(perSecond/100, 1)) }

// NewPacer gives a pacer of one instance that has so many a second, and its plan.
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

// Take waits for a second at most for each.
func (p blockingPacer) Take(n int) (t contest.Tally) {
	ctx := context.Background()
	for range n {
		told(&t, p.Acquire(ctx, time.Second))
	}
	return t
}

// told counts one that was waited for.
func told(t *contest.Tally, err error) {
	if err != nil {
		t.Failed, t.Err = t.Failed+1, err
		return
	}
	t.Allowed++
}

// Drain takes what has opened.
func (p blockingPacer) Drain() { drain(p.Pacer) }

func drain(p *pace.Pacer) {
	for p.TryAcquire() {
		continue
	}
}

// callbackPacer has one callback at a time, which does not wait.
type callbackPacer struct{ *pace.Pacer }

// Take is told each before it asks for the next.
func (p callbackPacer) Take(n int) (t contest.Tally) {
	f := func(_ headgate.Instant, err error) { told(&t, err) }
	for range n {
		p.AcquireFunc(1, 0, f)
	}
	return t
}

// Drain takes what has opened.
func (p callbackPacer) Drain() { drain(p.Pacer) }

type xTimeWait struct {
	noGoroutines

	limiter *rate.Limiter
}

func newXTimeWait(perSecond int64) xTimeWait {
	return xTimeWait{limiter: rate.NewLimiter(rate.Limit(perSecond), room(perSecond))}
}

// Take waits for each.
func (x xTimeWait) Take(n int) (t contest.Tally) {
	ctx := context.Background()
	for range n {
		told(&t, x.limiter.Wait(ctx))
	}
	return t
}

// Drain takes the tokens that are there.
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

// Drain takes as many as there can be: it cannot ask whether there are.
func (u uberTake) Drain() { u.Take(u.slack) }
