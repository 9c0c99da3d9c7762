package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sim"
	"github.com/headgate/headgate/store/memory"
)

// Options say when an Engine begins and how much it may keep.
type Options struct {
	// Start is the time at which the engine begins. Times before the Unix epoch count as the epoch.
	Start headgate.Instant
	// Seed decides which keys share places in memory. 0 is 1: no seed is random.
	Seed uint64
	// MaxMemory bounds the counters, in bytes; 0 is max_memory of the configuration.
	MaxMemory int64
	// Keys is the number of keys for which the counters have memory, so that nothing is evicted. It is in place of
	// MaxMemory; 0 keeps to the memory.
	Keys int64
	// WithoutDurations says that no attempt has a duration: throttle and in_flight are left out.
	WithoutDurations bool
	// Adapt changes the configuration of the guard, if it is not nil.
	Adapt func(*guard.Config)
}

// Engine is a guard in virtual time. One goroutine uses an Engine.
type Engine struct {
	time    *sim.Time
	guard   *guard.Guard
	store   *memory.Store
	leftOut []string
}

// New returns an engine at the start. The configuration stays as it is.
func New(c *config.Config, o Options) (*Engine, error) {
	e := &Engine{time: sim.NewTime(max(o.Start, 0))}
	own, leftOut := runnable(c, &o)
	if own.Throttle != nil {
		throttle := *own.Throttle
		throttle.Clock = Clock{e.time}
		own.Throttle = &throttle
	}
	e.leftOut = leftOut
	settings := own.StoreConfig()
	if o.Keys > 0 {
		settings.MaxMemory = memoryFor(own, settings, o.Keys)
	}
	settings.Clock, settings.Seed = e.time.Now, max(o.Seed, 1)
	var err error
	if e.store, err = memory.New(settings); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	described, err := own.GuardConfig(e.store, nil)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	described.Clock, described.State, described.WithoutState = e.time.Now, guard.NewStateAt(Clock{e.time}), false
	if described.FairShare != nil {
		share := *described.FairShare
		share.Seed = settings.Seed
		described.FairShare = &share
	}
	if o.Adapt != nil {
		o.Adapt(&described)
	}
	if e.guard, err = guard.New(described); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return e, nil
}

// Clock is a virtual time as the clock of waiting requests.
type Clock struct{ *sim.Time }

// Now implements guard.Clock.
func (c Clock) Now() time.Duration { return c.Since() }

// Alarm implements guard.Clock.
func (c Clock) Alarm(ring func()) guard.Alarm { return c.Time.Alarm(ring) }

// Now returns the virtual time.
func (e *Engine) Now() headgate.Instant { return e.time.Now() }

// Time returns the virtual clock, on which a caller can plan events of its own.
func (e *Engine) Time() *sim.Time { return e.time }

// Guard returns the guard, for its shares, bans and quotas. Requests arrive by Arrive.
func (e *Engine) Guard() *guard.Guard { return e.guard }

// LeftOut names, in words, what of the configuration is not decided.
func (e *Engine) LeftOut() []string { return e.leftOut }

// Evictions returns how many counters were dropped, although they still counted units, because the memory was full.
func (e *Engine) Evictions() uint64 { return e.store.Stats().Evicted }

// Memory returns the sizes and counters of the store.
func (e *Engine) Memory() memory.Stats { return e.store.Stats() }

// Open, as Attempt.Lasts, says that the caller ends the request by Engine.End.
const Open time.Duration = -1

// Attempt is one request on its way through an Engine. It may be reused once Ended was called, and must not be copied.
type Attempt struct {
	// Request is decided. The engine reads it until Decided.
	Request headgate.Request
	// Lasts is how long the request takes after its admission, and Outcome how it ends. Both are read after Decided.
	Lasts   time.Duration
	Outcome guard.Outcome
	// Decided is called once, with the Verdict, Allow or Deny; nil calls nothing. The guard's Answer is valid until Decided
	// returns. Decided may call Arrive for another Attempt.
	Decided func(*Attempt)
	// Ended is called when the engine no longer needs the Attempt; nil calls nothing.
	Ended func(*Attempt)

	// Verdict is the decision, Arrived its time, and Waited the time from then to the departure or the refusal.
	Verdict headgate.Verdict
	Arrived headgate.Instant
	Waited  time.Duration
	// Err says why an invalid request could not be decided. Its Verdict is Deny.
	Err error
	// Answer is the answer of the guard.
	Answer guard.Answer
	// Ticket is the request's way through the guard.
	Ticket guard.Ticket

	engine   *Engine
	departed func(headgate.Verdict) // decide, made once
	end      *sim.Alarm             // goes off after Lasts, made once
}

// Arrive decides a request now. A plain decision allocates nothing.
func (e *Engine) Arrive(a *Attempt) {
	if a.engine != e {
		a.end = nil
	}
	a.engine, a.Arrived, a.Waited, a.Err = e, e.time.Now(), 0, nil
	a.Ticket.Answer = &a.Answer
	if err := e.guard.Admit(context.Background(), &a.Request, &a.Ticket); err != nil {
		a.Err, a.Verdict = err, headgate.Deny
		a.tell()
		a.ended()
		return
	}
	if a.Answer.Verdict == headgate.Wait {
		if a.departed == nil {
			a.departed = a.decide
		}
		a.Ticket.WaitFunc(a.departed)
		return
	}
	a.decide(a.Answer.Verdict)
}

// decide follows the final verdict.
func (a *Attempt) decide(v headgate.Verdict) {
	e := a.engine
	a.Verdict, a.Waited = v, e.time.Now().Sub(a.Arrived)
	a.tell()
	if v != headgate.Allow {
		a.Ticket.Done(guard.Outcome{End: guard.Refused, Duration: a.Waited})
		a.ended()
		return
	}
	lives := a.Ticket.Forward()
	switch {
	case a.Lasts == Open:
	case a.Lasts > 0 && lives:
		if a.end == nil {
			a.end = e.time.Alarm(func() { e.End(a) })
		}
		a.end.Reset(a.Lasts)
	default: // Nothing in the guard depends on the end.
		e.End(a)
	}
}

// End ends an admitted request now, with its Outcome. The engine calls it after Lasts; with Lasts Open, the caller does.
func (e *Engine) End(a *Attempt) {
	if a.end != nil {
		a.end.Stop()
	}
	a.Outcome.Duration = e.time.Now().Sub(a.Arrived)
	a.Ticket.Done(a.Outcome)
	a.ended()
}

// Leave lets the client of a waiting or admitted request go away: its place goes to the next request. Decided is not called again.
func (e *Engine) Leave(a *Attempt) {
	if a.end != nil {
		a.end.Stop()
	}
	a.Ticket.Done(guard.Outcome{End: guard.ClientLeft, Duration: e.time.Now().Sub(a.Arrived)})
	a.ended()
}

func (a *Attempt) tell() {
	if a.Decided != nil {
		a.Decided(a)
	}
}

func (a *Attempt) ended() {
	if a.Ended != nil {
		a.Ended(a)
	}
}

// Advance lets all happen that is due until a time, and sets the clock to it. A time that has passed changes nothing.
func (e *Engine) Advance(to headgate.Instant) { e.time.RunTo(to) }

// Finish lets the rest happen: all departures and ends. The clock stops at the last event.
func (e *Engine) Finish() { e.time.Run(func() bool { return true }) }
