package wheel

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/headgate/headgate/internal/testkit/leak"
)

// TestMain checks that no goroutine remains, although Timers has no Close.
func TestMain(m *testing.M) { leak.Main(m) }

// log records the fired entries and their times, in a bubble's time.
type log struct {
	timers *Timers
	start  time.Time
	mu     sync.Mutex
	lines  []string
}

func newLog() *log { return &log{timers: NewTimers(nil), start: time.Now()} }

// entry makes an entry that records its name and then calls then.
func (l *log) entry(name string, then ...func()) *Entry {
	return &Entry{Fire: func() {
		l.mu.Lock()
		l.lines = append(l.lines, name+" "+time.Since(l.start).String())
		l.mu.Unlock()
		for _, f := range then {
			f()
		}
	}}
}

// after sleeps in the bubble, and compares the entries that have fired since the last call.
func (l *log) after(t *testing.T, d time.Duration, want ...string) {
	t.Helper()
	time.Sleep(d) //nolint:forbidigo // In a synctest bubble.
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.lines, want) {
		t.Errorf("after %v: %q, want %q", time.Since(l.start), l.lines, want)
	}
	l.lines = nil
}

// TestTimersStory starts near and far entries in different orders.
func TestTimersStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.timers.Start(l.entry("day"), day)
		l.timers.Start(l.entry("soon"), 3*ms) // The alarm was set for a late time.
		l.timers.Start(l.entry("between"), 2*ms+1)
		l.after(t, 3*ms-1)
		l.after(t, 1, "soon 3ms", "between 3ms")
		l.timers.Start(l.entry("now"), 0)
		l.timers.Start(l.entry("past"), -time.Hour)
		l.after(t, 0, "now 3ms", "past 3ms")
		if n := l.timers.Len(); n != 1 {
			t.Errorf("%d wait, want the one of tomorrow", n)
		}
		l.after(t, day-3*ms-1)
		l.after(t, 1, "day 24h0m0s")
		l.timers.Start(l.entry("year"), year-ms/2)
		l.after(t, year-1)
		l.after(t, 1, "year 8784h0m0s")
	})
}

// TestStop: a stopped entry does not fire, and Stop reports false for an entry that does not
// wait.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		a, b := l.entry("a"), l.entry("b")
		if l.timers.Stop(a) {
			t.Error("what was never started is stopped")
		}
		l.timers.Start(a, 5*ms)
		l.timers.Start(b, 7*ms)
		if !l.timers.Stop(a) || l.timers.Stop(a) {
			t.Error("what waits is not stopped once")
		}
		l.after(t, 10*ms, "b 7ms")
		if l.timers.Stop(b) {
			t.Error("what has fired is stopped")
		}
		l.timers.Start(b, 5*ms) // Stopping the last entry stops the alarm.
		l.timers.Stop(b)
		l.timers.Start(a, 9*ms)
		l.after(t, 9*ms, "a 19ms")
	})
}

// TestStartAgain moves a waiting entry to an earlier and to a later time.
func TestStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		a, b := l.entry("a"), l.entry("b")
		l.timers.Start(a, day)
		l.timers.Start(a, 5*ms)
		l.timers.Start(b, 3*ms)
		l.timers.Start(b, 8*ms)
		l.after(t, 2*day, "a 5ms", "b 8ms")
	})
}

// TestFireChangesTheTimers: a Fire starts entries, including its own, and stops others, also of
// the same tick.
func TestFireChangesTheTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		var again, silent *Entry
		rounds, stopped := 0, false
		again = l.entry("again", func() {
			if rounds++; rounds < 3 {
				l.timers.Start(again, 10*ms)
			}
			stopped = l.timers.Stop(silent) || stopped
		})
		silent = l.entry("silent")
		first := l.entry("first", func() { l.timers.Start(l.entry("child"), 64*ms) })
		l.timers.Start(first, 5*ms)
		l.timers.Start(again, 5*ms)
		l.timers.Start(silent, 5*ms)
		l.timers.Start(&Entry{}, 5*ms) // has no Fire
		l.after(t, day, "first 5ms", "again 5ms", "again 15ms", "again 25ms", "child 69ms")
		if !stopped || l.timers.Len() != 0 {
			t.Errorf("stopped %v, and %d are left", stopped, l.timers.Len())
		}
	})
}

// TestFireEndsItsGoroutine: the other entries still fire, as when a test calls t.FailNow in a
// Fire.
func TestFireEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.timers.Start(l.entry("a", runtime.Goexit), ms)
		l.timers.Start(l.entry("b"), ms)
		l.timers.Start(l.entry("c"), 2*ms)
		l.after(t, day, "a 1ms", "b 1ms", "c 2ms")
	})
}

// TestSlowFire: a Fire that blocks delays the other entries. No entry is lost, and new entries
// do not fire at the same time.
func TestSlowFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.timers.Start(l.entry("slow", func() {
			time.Sleep(20 * ms) //nolint:forbidigo // In a synctest bubble.
		}), ms)
		l.timers.Start(l.entry("held up"), 5*ms)
		l.after(t, 3*ms, "slow 1ms")
		l.timers.Start(l.entry("meanwhile"), ms)
		l.timers.Start(l.entry("behind"), 0)
		l.after(t, day, "behind 21ms", "meanwhile 21ms", "held up 21ms")
	})
}

// TestAlarmTwice: an alarm that rings during another firing leaves its entries to that one. An
// alarm without due entries is set again.
func TestAlarmTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.timers.Start(l.entry("a", l.timers.ring, l.entry("a ends").Fire), ms)
		l.timers.Start(l.entry("b"), ms)
		l.timers.Start(l.entry("c"), day)
		l.timers.ring()
		l.after(t, ms, "a 1ms", "a ends 1ms", "b 1ms")
		l.after(t, day, "c 24h0m0s")
	})
}

// TestIdleTimeIsSkipped: after hours without entries, the alarm is set for the departure itself,
// not for the past edges of levels.
func TestIdleTimeIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.after(t, 5*time.Hour)
		l.timers.Start(l.entry("a"), 5*ms)
		l.timers.mu.Lock()
		armed := l.timers.armed
		l.timers.mu.Unlock()
		if want := 5*time.Hour + 5*ms; armed != want {
			t.Errorf("the alarm is set for %v, want %v", armed, want)
		}
		l.after(t, 5*ms, "a 5h0m0.005s")
	})
}

// TestIdleTimersIsCollected: without waiting entries, the garbage collector frees a Timers,
// although its last alarm was set for the next day.
func TestIdleTimersIsCollected(t *testing.T) {
	timers := NewTimers(nil)
	departed := make(chan struct{})
	timers.Start(&Entry{Fire: func() { close(departed) }}, ms)
	<-departed
	var e Entry
	timers.Start(&e, day)
	timers.Stop(&e)
	held := weak.Make(timers)
	for round := 0; held.Value() != nil; round++ {
		if round == 100 {
			t.Fatal("an idle Timers is not collected")
		}
		runtime.GC()
	}
}

// contested is an entry that several goroutines may stop. Its outcome is its Fire (true) or an
// earlier Stop.
type contested struct {
	Entry

	due     time.Time
	outcome chan bool
}

// TestManyGoroutines: several goroutines start and stop entries. Each start ends in one Fire or
// one Stop, and no Fire is early.
func TestManyGoroutines(t *testing.T) {
	const goroutines, each, rounds = 16, 8, 60
	timers := NewTimers(nil)
	var early, fired, stopped atomic.Int64
	entries := make([]contested, goroutines*each)
	for i := range entries {
		e := &entries[i]
		e.outcome = make(chan bool, 1)
		e.Fire = func() {
			if time.Now().Before(e.due) {
				early.Add(1)
			}
			e.outcome <- true
		}
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			own := entries[g*each : (g+1)*each]
			for range rounds {
				for i := range own {
					d := time.Duration(r.Int64N(int64(3 * ms)))
					own[i].due = time.Now().Add(d)
					timers.Start(&own[i].Entry, d)
				}
				for range each {
					if e := &entries[r.IntN(len(entries))]; timers.Stop(&e.Entry) {
						e.outcome <- false
					}
				}
				for i := range own {
					select {
					case fire := <-own[i].outcome:
						if fire {
							fired.Add(1)
						} else {
							stopped.Add(1)
						}
					case <-time.After(10 * time.Second):
						t.Error("an entry was not fired")
						return
					}
				}
			}
		})
	}
	all.Wait()
	if n := fired.Load() + stopped.Load(); n != goroutines*each*rounds || early.Load() != 0 || timers.Len() != 0 {
		t.Errorf("%d outcomes of %d, %d early, %d left", n, goroutines*each*rounds, early.Load(), timers.Len())
	}
	for i := range entries {
		if len(entries[i].outcome) != 0 {
			t.Errorf("entry %d has two outcomes", i)
		}
	}
	t.Logf("%d fired and %d were stopped", fired.Load(), stopped.Load())
}

// TestTimersAllocateNothing: Start and Stop allocate nothing, also when the alarm changes each
// time.
func TestTimersAllocateNothing(t *testing.T) {
	timers := NewTimers(nil)
	var a, b Entry
	timers.Start(&a, day)
	if n := testing.AllocsPerRun(100, func() {
		timers.Start(&b, time.Hour)
		timers.Stop(&a)
		timers.Stop(&b)
		timers.Start(&a, day)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	timers.Stop(&a)
}
