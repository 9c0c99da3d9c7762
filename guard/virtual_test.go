package guard_test

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// world is virtual time: ordered events on one goroutine. It is a wheel.Clock.
type world struct {
	now    time.Duration
	events events
	count  int
}

type event struct {
	at    time.Duration
	order int // the order of events at one time
	run   func()
}

type events []event

func (e *events) Len() int { return len(*e) }
func (e *events) Less(i, j int) bool {
	a, b := &(*e)[i], &(*e)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Push(x any)    { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) at(t time.Duration, run func()) {
	w.count++
	heap.Push(&w.events, event{t, w.count, run})
}

func (w *world) run() {
	for len(w.events) > 0 {
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		next.run()
	}
}

// Now implements wheel.Clock.
func (w *world) Now() time.Duration { return w.now }

// Alarm implements wheel.Clock.
func (w *world) Alarm(ring func()) wheel.Alarm { return &alarm{world: w, ring: ring} }

// alarm fires only for its latest setting.
type alarm struct {
	world *world
	ring  func()
	turn  int
}

func (a *alarm) Reset(d time.Duration) bool {
	a.turn++
	turn := a.turn
	a.world.at(a.world.now+d, func() {
		if turn == a.turn {
			a.ring()
		}
	})
	return true
}

func (a *alarm) Stop() bool {
	a.turn++
	return true
}

// TestVirtualTime: 100,000 requests run on one goroutine, with delays and slots. Two runs have the same
// results at the same virtual times. No request waits at the end.
func TestVirtualTime(t *testing.T) {
	requests := race.Fewer(100_000, 5_000)
	first, served := virtualDay(t, requests)
	second, _ := virtualDay(t, requests)
	if first != second {
		t.Errorf("two runs differ: %x and %x", first, second)
	}
	if served*10 < requests*6 {
		t.Errorf("%d of %d requests were served", served, requests)
	}
}

func virtualDay(t *testing.T, requests int) (sum uint64, served int) {
	t.Helper()
	w := new(world)
	clock := func() headgate.Instant { return headgate.Instant(time.Hour + w.now) }
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	limit := byClient(t, "a", "/a")
	limit.Policies = []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 100, Per: time.Second, Burst: 40}}}
	slots := atmost.New(3, 10)
	g, err := guard.New(guard.Config{
		Rules: []guard.Rule{limit}, Stages: []guard.Stage{slots}, Store: store, Clock: clock, State: guard.NewStateAt(w),
	})
	if err != nil {
		t.Fatal(err)
	}
	random, ended := rand.New(rand.NewPCG(1, 2)), fnv.New64a()
	end := func(i int, ticket *guard.Ticket, v headgate.Verdict) {
		_, _ = ended.Write([]byte(strconv.Itoa(i) + v.String() + w.now.String()))
		if v != headgate.Allow {
			ticket.Done(guard.Outcome{End: guard.Refused})
			return
		}
		served++
		w.at(w.now+time.Duration(random.IntN(int(20*time.Millisecond))), func() { ticket.Done(guard.Outcome{}) })
	}
	at := time.Duration(0)
	for i := range requests {
		at += time.Duration(random.IntN(int(6 * time.Millisecond)))
		leaves := random.IntN(10) == 0
		client := strconv.Itoa(random.IntN(4))
		w.at(at, func() {
			ticket := &guard.Ticket{Answer: new(guard.Answer)}
			if err := g.Admit(t.Context(), request("/a", client), ticket); err != nil {
				t.Error(err)
			}
			if v := ticket.Answer.Verdict; v != headgate.Wait {
				end(i, ticket, v)
				return
			}
			ticket.WaitFunc(func(v headgate.Verdict) { end(i, ticket, v) })
			if leaves {
				w.at(w.now+time.Millisecond, func() { ticket.Done(guard.Outcome{End: guard.ClientLeft}) })
			}
		})
	}
	w.run()
	if used, peak, waiting := slots.Slots(); used != 0 || peak != 3 || waiting != 0 || g.Waiting("a") != 0 {
		t.Errorf("%d slots are used, %d were at once; %d requests wait for one, %d for a departure", used, peak, waiting, g.Waiting("a"))
	}
	return ended.Sum64(), served
}
