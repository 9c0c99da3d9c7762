package holder

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// world has one server and holders in virtual time. Each holder has a connection, which may break:
// messages under way are then lost, or arrive later than messages of the next connection.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	now      headgate.Instant
	events   events
	order    int
	config   state.Config
	server   *state.Server
	out      state.Out
	wake     headgate.Instant
	users    []*user
	loss     float64 // of messages under way when a connection breaks
	repeat   float64
	capacity int64
}

type event struct {
	at    headgate.Instant
	order int
	do    func()
}

type events []event

func (e *events) Len() int      { return len(*e) }
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// user is a program with a holder.
type user struct {
	w     *world
	name  string
	h     *Holder
	round int // of the connection
	wake  headgate.Instant
	sent  int
	delay headgate.Instant
}

const resource = "db"

func newWorld(t *testing.T, seed uint64, capacity int64) *world {
	t.Helper()
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 3)), capacity: capacity}
	w.config = state.Config{
		Resources: []state.Resource{{Match: "*", Capacity: capacity, Algorithm: state.MaxMin, Safe: -1}},
		Lease:     15 * time.Second, Refresh: 5 * time.Second, Term: 1,
	}
	w.start()
	return w
}

func (w *world) start() {
	server, err := state.New(w.config, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server, w.wake = server, never
	w.config.Term++
	w.config.Restarted = true
}

func (w *world) at(t headgate.Instant, do func()) {
	w.order++
	heap.Push(&w.events, event{t, w.order, do})
}

func (w *world) run(until headgate.Instant) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

// send delivers a message of a connection.
func (u *user) send(arrive func()) {
	w, round := u.w, u.round
	deliver := func() {
		if u.round == round || w.rand.Float64() >= w.loss {
			arrive()
		}
	}
	w.at(w.now+u.delay, deliver)
	if w.rand.Float64() < w.repeat {
		w.at(w.now+u.delay+headgate.Instant(w.rand.Int64N(int64(2*sec))), deliver)
	}
}

// flush sends what the server has sent.
func (w *world) flush() {
	for _, d := range w.out.Leases {
		for _, u := range w.users {
			if u.name == d.Holder {
				u.send(func() { u.h.Receive(w.now, []state.Lease{d.Lease}); u.flush() })
			}
		}
	}
	for _, r := range w.out.Refusals {
		for _, u := range w.users {
			if u.name == r.Holder {
				u.h.Refuse(w.now, &r)
			}
		}
	}
	w.out.Reset()
	if at, ok := w.server.Next(); ok && at < w.wake {
		w.wake = max(at, w.now)
		server := w.server
		w.at(w.wake, func() {
			if w.server == server && w.wake <= w.now {
				w.wake = never
				server.Advance(w.now, &w.out)
				w.flush()
			}
		})
	}
}

// join adds a program that is connected and has a claim.
func (w *world) join(wants int64, mode OnLoss) *user {
	name := fmt.Sprint("holder", len(w.users))
	u := &user{w: w, name: name, wake: never, delay: headgate.Instant(w.rand.Int64N(int64(50 * ms)))}
	u.h = New(Config{Name: name, OnLoss: mode, Rand: w.rand})
	w.users = append(w.users, u)
	if err := u.h.Claim(w.now, resource); err != nil {
		w.t.Fatal(err)
	}
	u.h.Connected(w.now)
	u.want(wants)
	return u
}

func (u *user) want(wants int64) {
	u.h.Want(resource, wants)
	u.flush()
}

// flush sends the reports that are due, and sets the timer.
func (u *user) flush() {
	w := u.w
	var r Report
	for u.h.Report(w.now, &r) {
		u.sent++
		report := &state.Report{Holder: r.Holder, Seq: r.Seq, Acks: append([]state.Ack(nil), r.Acks...)}
		report.Claims = append(report.Claims, r.Claims...)
		u.send(func() {
			if w.server == nil {
				return
			}
			if err := w.server.Receive(w.now, "", report, &w.out); err != nil {
				w.t.Fatal(err)
			}
			w.flush()
		})
	}
	at := max(u.h.Next(w.now), w.now+1)
	if at < u.wake || u.wake <= w.now {
		u.wake = at
		w.at(at, func() {
			if u.wake <= w.now {
				u.wake = never
				u.h.Advance(w.now)
				u.flush()
			}
		})
	}
}

// cut breaks the connection of a program, for a time.
func (u *user) cut(down headgate.Instant) {
	u.round++
	u.h.Disconnected()
	round := u.round
	u.w.at(u.w.now+down, func() {
		if u.round == round {
			u.h.Connected(u.w.now)
			u.flush()
		}
	})
}

// sum returns the sum of what all programs may use.
func (w *world) sum() (sum int64) {
	for _, u := range w.users {
		sum += u.h.Amount(w.now, resource)
	}
	return sum
}
