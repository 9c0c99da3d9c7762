package backoff

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/pace"
)

// Listener reads a provider's answers, and brakes the pacer of its calls. Use one Listener for
// each pacer: each of two would know only half of the answers. A Listener is safe for concurrent
// use. A Listener has no goroutine, and a timer only during a brake, so there is no Close.
type Listener struct {
	pacer    *pace.Pacer
	provider string

	sent, retried, implausible atomic.Uint64
	heard                      [feedback.Refused + 1]atomic.Uint64

	mu      sync.Mutex // Not held while the pacer is told.
	slower  feedback.Slower
	timer   *time.Timer   // It wakes when another brake is due.
	asked   time.Time     // when the pacer was looked at
	per     time.Duration // its windows' length
	holds   bool          // It held back those who call.
	telling bool
	again   bool // There is news since the pacer began to be told.
}

// New makes the Listener of a pacer.
func New(p *pace.Pacer) *Listener { return &Listener{pacer: p, provider: p.Stats().Provider} }

// Pacer gives the pacer that it brakes.
func (l *Listener) Pacer() *pace.Pacer { return l.pacer }

// Acquire takes the pacer's permits for a call: none for 0 units.
func (l *Listener) Acquire(ctx context.Context, units int64, maxWait time.Duration) error {
	if units == 0 {
		return ctx.Err()
	}
	return l.pacer.AcquireN(ctx, units, maxWait)
}

// Sending counts a call that has its permits, before the call is sent. again marks a retry. It
// returns the time, for Observe.
func (l *Listener) Sending(again bool) time.Time {
	l.sent.Add(1)
	if again {
		l.retried.Add(1)
	}
	return time.Now()
}

// Observe processes the advice of an answer that has just arrived. sent is the time at which the
// call was sent, after it had its permits. An answer without advice costs one addition.
func (l *Listener) Observe(a feedback.Advice, sent time.Time) {
	if a.Kind > feedback.Refused {
		return
	}
	l.heard[a.Kind].Add(1)
	if a.Implausible {
		l.implausible.Add(1)
	}
	if a.Kind == feedback.Nothing {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	if a.Kind == feedback.Spent && l.holds {
		return
	}
	if l.slower.Observe(a, sent, now, l.per) {
		l.tell()
	}
}

// look reads the state of the pacer, though not for each answer.
//
// A pacer that holds calls back uses its whole limit. If the provider counts over a sliding time,
// its answers then always say that nothing remains. To stop at such answers would cost half of the
// limit.
func (l *Listener) look(now time.Time) {
	const often = 100 * time.Millisecond
	if !l.asked.IsZero() && now.Sub(l.asked) < often {
		return
	}
	s := l.pacer.Stats()
	l.asked, l.per = now, s.Per
	l.holds = s.Waiters > 0 || s.Demand >= s.Part && s.Demand > 0
}

// tell sets the current brake at the pacer, and the timer for the next one. The caller holds the
// lock. The lock is released during the call, because the pacer may log or call others. A second
// caller meanwhile leaves the work to the first.
func (l *Listener) tell() {
	l.again = true
	if l.telling {
		return
	}
	l.telling = true
	defer func() { l.telling = false }()
	for l.again {
		l.again = false
		now := time.Now()
		b, next := l.slower.Brake(now)
		if next.IsZero() {
			return // The pacer's brake has ended by itself.
		}
		l.wakeAfter(next.Sub(now))
		l.tellPacer(b)
	}
}

func (l *Listener) tellPacer(b feedback.Brake) {
	l.mu.Unlock()
	defer l.mu.Lock()
	l.pacer.Brake(pace.Brake(b))
}

func (l *Listener) wakeAfter(d time.Duration) {
	if l.timer != nil {
		l.timer.Reset(d)
		return
	}
	l.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tell()
	})
}
