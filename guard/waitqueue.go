package guard

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/queue"
	"github.com/headgate/headgate/guard/wheel"
)

// waitQueues holds a queue for each key of a limit that requests wait for, in memory
// and on a shared store: those of this process. A queue is there while a request
// waits in it, or while a departure is booked that no request takes.
type waitQueues struct {
	clock wheel.Clock
	count atomic.Int64 // of all, so that a decision looks for a queue only when there is one

	// mu guards what follows, and each queue. It is held for a few steps of one queue,
	// never during a call to a store. The lock of timers is taken inside it.
	mu     sync.Mutex
	all    map[queueID]*waitQueue
	timers *wheel.Timers // nil until a request waits
	gone   []func()      // to be called when mu is given up
}

// unlock gives up mu, and tells the requests without a goroutine whose departure came.
func (s *waitQueues) unlock() {
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	callAll(gone)
}

// callAll calls each function, though one of them panics.
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

// whenGone has notify called when the departure of w comes. It reports false when that has
// come, or w has left.
func (s *waitQueues) whenGone(w *waiter, notify func()) bool {
	s.mu.Lock()
	defer s.unlock()
	if w == nil || !w.waits {
		return false
	}
	w.notify = notify
	return true
}

// queueID tells queues apart. Requests under a changed limit have a queue of their own.
type queueID struct {
	store  headgate.Store
	key    string
	policy headgate.PolicyID
	window uint8
	shadow bool
}

// waitQueue is the queue of one key. Everything is under waitQueues.mu.
type waitQueue struct {
	queue.Queue

	id     queueID
	of     *waitQueues
	rule   *places
	entry  wheel.Entry   // of the next departure
	rings  time.Duration // when entry fires, or unset
	booked int           // slots that rule counts
	// clock is the store's time less that of this process, by the last decision.
	clock headgate.Instant
}

// unset is the time of an entry that does not wait.
const unset time.Duration = -1

// places counts what one rule holds, over all keys.
type places struct {
	waiting atomic.Int64
	// slots counts booked departures. A rule keeps as many without a waiter as it may
	// have waiters.
	slots atomic.Int64
}

// member is a request in one queue. Everything is under waitQueues.mu.
type member struct {
	queue.Waiter

	queue *waitQueue
	of    *waiter // nil until it is decided that the request waits
	gone  bool    // it has its departure, or has left
}

func newWaitQueues(c wheel.Clock) *waitQueues {
	return &waitQueues{clock: c, all: map[queueID]*waitQueue{}}
}

// find gives the queue of an id, or nil; mu is held.
func (s *waitQueues) find(id queueID) *waitQueue { return s.all[id] }

// open gives the queue of an id and makes it if need be; mu is held.
func (s *waitQueues) open(id queueID, pace queue.Pace, rule *places) *waitQueue {
	if q := s.all[id]; q != nil {
		return q
	}
	if s.timers == nil {
		s.timers = wheel.NewTimers(s.clock)
	}
	id.key = strings.Clone(id.key) // The answer's keys are written over.
	q := &waitQueue{Queue: queue.New(pace), id: id, of: s, rule: rule, rings: unset}
	q.entry.Fire = q.fire
	s.all[id] = q
	s.count.Add(1)
	return q
}

// fire runs when the next departure has come.
func (q *waitQueue) fire() {
	q.of.mu.Lock()
	defer q.of.unlock()
	q.rings = unset
	q.serve(q.of.now())
	q.rearm()
}

// serve lets all go whose departure has come; mu is held.
func (q *waitQueue) serve(now time.Duration) {
	for w := q.Pop(now); w != nil; w = q.Pop(now) {
		w.Owner.(*member).granted() //nolint:errcheck,forcetypeassert // because no other owner is ever set.
	}
	q.Expire(now)
}

// rearm follows a change of the queue: it counts the slots, sets the time of the next
// departure, and forgets a queue that is empty; mu is held.
func (q *waitQueue) rearm() {
	q.rule.slots.Add(int64(q.Slots() - q.booked))
	q.booked = q.Slots()
	at, waits := q.Next()
	switch {
	case waits:
	case q.booked > 0:
		at = q.End() + wheel.Tick // Until then a request may come that takes it.
	default:
		q.close()
		return
	}
	if at != q.rings {
		q.rings = at
		q.of.timers.Start(&q.entry, at-q.of.now())
	}
}

func (q *waitQueue) close() {
	if q.of.all[q.id] != q {
		return
	}
	delete(q.of.all, q.id)
	q.of.count.Add(-1)
	if q.rings != unset {
		q.of.timers.Stop(&q.entry)
		q.rings = unset
	}
}

// granted gives the member its departure; mu is held. The request goes when each
// limit that it waits for has given it one.
func (m *member) granted() {
	m.gone = true
	if w := m.of; w != nil {
		w.pending--
		m.queue.of.goIfDone(w)
	}
}

// leave takes the member out of its queue, unless it is gone; mu is held.
func (m *member) leave(now time.Duration) {
	if m.gone {
		return
	}
	m.gone = true
	m.queue.Leave(&m.Waiter, now)
	m.queue.rearm()
}

// reserve gives a request the spare units of a queue, if there are as many as it costs.
// The decision is then that it waits for them; nothing is booked.
func (s *waitQueues) reserve(r *Result, id queueID, policy *window) bool {
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
	m := &member{Waiter: queue.Waiter{Cost: r.cost}, queue: q}
	m.Owner = m
	q.Append(&m.Waiter)
	q.rearm()
	r.member = m
	r.Decision = headgate.Decision{
		Verdict: headgate.Wait, Reason: headgate.Scheduled, Limit: roomOf(policy.limit),
		RetryAfter: max(at-now, 1), ResetAfter: max(q.End()-now, 1), At: q.clock + headgate.Instant(now),
	}
	return true
}

// roomOf gives the most that a bucket admits at once.
func roomOf(l headgate.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Count
}

// join puts a result that is booked into its queue; mu is held.
func (s *waitQueues) join(r *Result, id queueID, pace queue.Pace, now time.Duration) {
	q := s.open(id, pace, r.from.places)
	m := &member{Waiter: queue.Waiter{Cost: r.cost}, queue: q}
	m.Owner = m
	q.clock = r.Decision.At - headgate.Instant(now)
	q.Add(&m.Waiter, &queue.Slot{At: now + r.Decision.RetryAfter, Units: r.cost, Receipt: r.Decision.Receipt})
	q.rearm()
	r.member = m
}

// keep puts back a slot that no request waits for and its store does not take, so that
// the next request can take it. A rule that has too many of these gives it up.
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

// tail takes a slot out of a queue that no request waits for, to offer it to the store.
func (q *waitQueue) tail() (*queue.Slot, headgate.Instant) {
	q.of.mu.Lock()
	defer q.of.unlock()
	slot := q.TakeTail()
	if slot != nil {
		q.rearm()
	}
	return slot, q.clock
}
