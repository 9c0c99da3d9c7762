package heed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/feedback"
)

// Listener hears what a provider answers, and brakes the pacer of its calls. There
// should be one for a pacer: of two, each would know half. Its methods may be called by
// any number of goroutines. It has no goroutine, and a timer only while it brakes, so that
// it need not be closed.
type Listener struct {
	pacer    *pace.Pacer
	provider string

	sent, retried atomic.Uint64
	heard         [feedback.Refused + 1]atomic.Uint64

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

// Sending counts a call that has its permits and is about to be sent, for the first
// time or again, and gives the time, for Hear.
func (l *Listener) Sending(again bool) time.Time {
	l.sent.Add(1)
	if again {
		l.retried.Add(1)
	}
	return time.Now()
}

// Hear takes what an answer asks, which came just now, to a call that was sent at sent: when
// it had its permits. An answer that asks nothing costs one addition.
func (l *Listener) Hear(a feedback.Advice, sent time.Time) {
	if a.Kind > feedback.Refused {
		return
	}
	l.heard[a.Kind].Add(1)
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
	if l.slower.Hear(a, sent, now, l.per) {
		l.tell()
	}
}

// look looks at the pacer, but not for each answer, since all may say something.
//
// A pacer that holds calls back keeps to a limit, and who does so is told all the time
// that nothing remains, when the limit is counted over a sliding time. To stop then
// would cost half of it.
func (l *Listener) look(now time.Time) {
	const often = 100 * time.Millisecond
	if !l.asked.IsZero() && now.Sub(l.asked) < often {
		return
	}
	s := l.pacer.Stats()
	l.asked, l.per = now, s.Per
	l.holds = s.Waiters > 0 || s.Demand >= s.Part && s.Demand > 0
}

// tell tells the pacer of the brake that holds, and sets the timer for the next. The
// pacer may log, or tell others, and those may call: so the lock, which is held here,
// is free meanwhile, and who finds another telling leaves it to that one.
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
