package guard

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/queue"
	"github.com/headgate/headgate/guard/internal/wheel"
)

// waitQueues has a queue for each key and limit that requests of this process wait for, also
// with a shared store. A queue exists while a request waits in it, or while it has a booked
// departure that no request has taken.
type waitQueues struct {
	clock Clock
	count atomic.Int64 // the number of queues, so that a decision looks for a queue only when there is one

	// mu guards the fields below, and each queue. It is held for a few steps of one queue, never
	// during a call of a store. The lock of timers is taken while mu is held.
	mu     sync.Mutex
	all    map[queueID]*waitQueue
	timers *wheel.Timers // nil until a request waits
	gone   []func()      // calls to make after mu is released
}

// unlock releases mu, and notifies departing requests that wait without a goroutine.
func (s *waitQueues) unlock() {
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	callAll(gone)
}

// callAll calls each function, also when one of them panics.
func callAll(all []func()) {
	i := 0
	defer func() {
		if i < len(all) {
			callAll(all[i+1:])
		}
	}()
	for ; i < len(all); i++ {
		all[i]()
	}
}

// whenGone calls notify at the departure of w. It reports false when w has departed or left.
func (s *waitQueues) whenGone(w *waiter, notify func()) bool {
	s.mu.Lock()
	defer s.unlock()
	if w == nil || !w.waits {
		return false
	}
	w.notify = notify
	return true
}

// queueID identifies a queue. Requests under a changed limit have another queue.
type queueID struct {
	store  headgate.Store
	key    string
	policy headgate.PolicyID
	window uint8
	shadow bool
}

// waitQueue is the queue of one key. waitQueues.mu guards it.
type waitQueue struct {
	queue.Queue

	id     queueID
	queues *waitQueues
	rule   *places
	entry  wheel.Entry   // fires at the next departure
	rings  time.Duration // when entry fires, or unset
	booked int           // slots that the rule counts
	// clock is the store's time less this process's, at the last decision.
	clock headgate.Instant
}

// unset is the time of an entry that is not armed.
const unset time.Duration = -1

// places counts the waiters, the slots and the settled units of one rule, over all keys.
type places struct {
	waiting atomic.Int64
	// slots counts booked departures. A rule keeps at most as many slots without a waiter as it
	// may have waiters.
	slots atomic.Int64
	// holding counts the slots in flight (Rule.InFlight) of this process.
	holding atomic.Int64
	settled settledUnits
	stated  statedCounts
	tokens  tokenCounts
	// learning is what settled answers have taught; nil for a rule without estimates. State.mu guards it.
	learning *learning
}

// member is a request in one queue. waitQueues.mu guards it.
type member struct {
	queue.Waiter

	queue  *waitQueue
	waiter *waiter // nil until the request is known to wait
	gone   bool    // departed, or left
}

func newWaitQueues(c Clock) *waitQueues {
	return &waitQueues{clock: c, all: map[queueID]*waitQueue{}}
}

// find gives the queue of an id, or nil. The caller holds mu.
func (s *waitQueues) find(id queueID) *waitQueue { return s.all[id] }

// open gives the queue of an id, and makes it if there is none. The caller holds mu.
func (s *waitQueues) open(id queueID, pace queue.Pace, rule *places) *waitQueue {
	if q := s.all[id]; q != nil {
		return q
	}
	if s.timers == nil {
		s.timers = wheel.NewTimers(s.clock)
	}
	id.key = strings.Clone(id.key) // The answer reuses the memory of its keys.
	q := &waitQueue{Queue: queue.New(pace), id: id, queues: s, rule: rule, rings: unset}
	q.entry.Fire = q.fire
	s.all[id] = q
	s.count.Add(1)
	return q
}

// fire runs at the time of the next departure.
func (q *waitQueue) fire() {
	q.queues.mu.Lock()
	defer q.queues.unlock()
	q.rings = unset
	q.serve(q.queues.now())
	q.rearm()
}

// serve lets all requests with a departure at or before now go. The caller holds mu.
func (q *waitQueue) serve(now time.Duration) {
	for w := q.Pop(now); w != nil; w = q.Pop(now) {
		w.Owner.(*member).granted() //nolint:errcheck,forcetypeassert // because no other owner is ever set.
	}
	q.Expire(now)
}

// rearm follows a change of the queue. It counts the slots, sets the timer of the next
// departure, and drops an empty queue. The caller holds mu.
func (q *waitQueue) rearm() {
	q.rule.slots.Add(int64(q.Slots() - q.booked))
	q.booked = q.Slots()
	at, waits := q.Next()
	switch {
	case waits:
	case q.booked > 0:
		at = q.End() + wheel.Tick // Until then a new request may take the departure.
	default:
		q.close()
		return
	}
	if at != q.rings {
		q.rings = at
		q.queues.timers.Start(&q.entry, at-q.queues.now())
	}
}

func (q *waitQueue) close() {
	if q.queues.all[q.id] != q {
		return
	}
	delete(q.queues.all, q.id)
	q.queues.count.Add(-1)
	if q.rings != unset {
		q.queues.timers.Stop(&q.entry)
		q.rings = unset
	}
}

// granted gives the member its departure. The request goes when each limit that it waits for
// has granted one. The caller holds mu.
func (m *member) granted() {
	m.gone = true
	if w := m.waiter; w != nil {
		w.pending--
		m.queue.queues.goIfDone(w)
	}
}

// leave removes the member from its queue unless it has departed. The caller holds mu.
func (m *member) leave(now time.Duration) {
	if m.gone {
		return
	}
	m.gone = true
	m.queue.Leave(&m.Waiter, now)
	m.queue.rearm()
}

// reserve gives a request the spare units of a queue, if they cover its cost. The decision is
// then a Wait for these units, and nothing is booked. Without takes, the queue keeps them.
func (s *waitQueues) reserve(r *Result, id queueID, takes bool) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.unlock()
	q := s.find(id)
	if q == nil {
		return false
	}
	now := s.now()
	q.serve(now)
	at, ok := q.Promise(r.cost)
	if !ok {
		q.rearm()
		return false
	}
	if takes {
		m := &member{Waiter: queue.Waiter{Cost: r.cost}, queue: q}
		m.Owner = m
		q.Append(&m.Waiter)
		r.member = m
	}
	q.rearm()
	r.Decision = headgate.Decision{
		Verdict: headgate.Wait, Reason: headgate.Scheduled, Limit: roomOf(r.window.limit),
		RetryAfter: max(at-now, 1), ResetAfter: max(q.End()-now, 1), At: q.clock + headgate.Instant(now),
	}
	return true
}

// roomOf gives the number of units that a bucket admits at once.
func roomOf(l headgate.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Count
}

// join adds a booked result to its queue. The caller holds mu.
func (s *waitQueues) join(r *Result, id queueID, pace queue.Pace, now time.Duration) {
	q := s.open(id, pace, r.from.places)
	m := &member{Waiter: queue.Waiter{Cost: r.cost}, queue: q}
	m.Owner = m
	q.clock = r.Decision.At - headgate.Instant(now)
	q.Add(&m.Waiter, &queue.Slot{At: now + r.Decision.RetryAfter, Units: r.cost, Receipt: r.Decision.Receipt})
	q.rearm()
	r.member = m
}

// keep puts back a slot that no request waits for and that the store does not accept, so that
// the next request can take it. Beyond the bound of its rule, the slot is dropped.
func (s *waitQueues) keep(id queueID, pace queue.Pace, rule *places, slot *queue.Slot, clock headgate.Instant, most int) {
	s.mu.Lock()
	defer s.unlock()
	if rule.slots.Load() >= 2*int64(most) || slot.At <= s.now() {
		return
	}
	q := s.open(id, pace, rule)
	q.clock = clock
	q.Put(slot)
	q.rearm()
}

// tail removes a slot from a queue without waiters, to offer it to the store.
func (q *waitQueue) tail() (*queue.Slot, headgate.Instant) {
	q.queues.mu.Lock()
	defer q.queues.unlock()
	slot := q.TakeTail()
	if slot != nil {
		q.rearm()
	}
	return slot, q.clock
}
