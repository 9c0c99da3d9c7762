package wheel

import (
	"container/heap"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks behind docs/decisions/0007: the wheel beside what it was chosen
// over, a heap of entries, and one timer of the runtime for each. They report
// processor time by the system's account, which others on the machine disturb less
// than they do the time that passes.
//
//	go test -run '^$' -bench . -benchtime 100ms -count 5 ./guard/wheel

// queue is what is compared: a number of entries that wait.
type queue interface {
	// start makes entry i wait until a time, and stop no longer.
	start(i int, at time.Duration)
	stop(i int)
}

// virtual is a queue whose time is an argument: next takes out the first entry,
// and lets it wait again for d from its departure on.
type virtual interface {
	queue
	next(d time.Duration)
}

// contestant is a kind of queue; its make is given the number of entries.
type contestant struct {
	name string
	make func(n int) queue
}

func contestants() []contestant {
	return []contestant{
		{"wheel", func(n int) queue { return &wheelQueue{entries: make([]Entry, n)} }},
		{"heap", func(n int) queue { return &heapQueue{entries: make([]heapEntry, n)} }},
		{"Timers", func(n int) queue { return &timersQueue{NewTimers(nil), make([]Entry, n)} }},
		{"AfterFunc", func(n int) queue { return make(runtimeQueue, n) }},
	}
}

type wheelQueue struct {
	entries []Entry
	wheel   Wheel
	now     time.Duration
}

func (q *wheelQueue) start(i int, at time.Duration) { q.wheel.Add(&q.entries[i], at) }
func (q *wheelQueue) stop(i int)                    { q.wheel.Remove(&q.entries[i]) }

func (q *wheelQueue) next(d time.Duration) {
	e := q.wheel.Pop(q.now)
	for ; e == nil; e = q.wheel.Pop(q.now) {
		q.now, _ = q.wheel.Next()
	}
	q.wheel.Add(e, q.now+d)
}

// heapQueue is container/heap over pointers to entries that know where they are.
type heapQueue struct {
	entries []heapEntry
	heap    entryHeap
}

type heapEntry struct {
	at    time.Duration
	index int
	_     func() // as Entry.Fire
}

type entryHeap []*heapEntry

func (h *entryHeap) Len() int           { return len(*h) }
func (h *entryHeap) Less(i, j int) bool { return (*h)[i].at < (*h)[j].at }

func (h *entryHeap) Swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (h *entryHeap) Push(x any) {
	e := x.(*heapEntry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

func (q *heapQueue) start(i int, at time.Duration) {
	q.entries[i].at = at
	heap.Push(&q.heap, &q.entries[i])
}

func (q *heapQueue) stop(i int) { heap.Remove(&q.heap, q.entries[i].index) }

func (q *heapQueue) next(d time.Duration) {
	e := heap.Pop(&q.heap).(*heapEntry)
	e.at += d
	heap.Push(&q.heap, e)
}

// timersQueue and runtimeQueue live in real time: a time is a wait from now on.
type timersQueue struct {
	timers  *Timers
	entries []Entry
}

func (q *timersQueue) start(i int, at time.Duration) { q.timers.Start(&q.entries[i], at) }
func (q *timersQueue) stop(i int)                    { q.timers.Stop(&q.entries[i]) }

type runtimeQueue []*time.Timer

func (q runtimeQueue) start(i int, at time.Duration) {
	if q[i] == nil {
		q[i] = time.AfterFunc(at, func() {})
		return
	}
	q[i].Reset(at)
}

func (q runtimeQueue) stop(i int) { q[i].Stop() }

// sizes are the numbers of entries that wait.
func sizes() []int { return []int{1, 1000, 1_000_000} }

// random gives numbers below a bound, for waits or for the choice of entries: many
// enough that a million entries do not all stay in the processor's cache.
func random(below int64) []int64 {
	r, all := rand.New(rand.NewPCG(1, 1)), make([]int64, 1<<20)
	for i := range all {
		all[i] = r.Int64N(below)
	}
	return all
}

// full makes a queue of n entries that wait for one to two minutes: none fires
// while a benchmark runs. It gives the bytes of the heap that each takes.
func full(c contestant, n int) (q queue, bytes float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	q = c.make(n)
	waits := random(int64(time.Minute))
	for i := range n {
		q.start(i, time.Minute+time.Duration(waits[i%len(waits)]))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return q, float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

// empty stops all, so that a later benchmark runs without them.
func empty(q queue, n int) {
	for i := range n {
		q.stop(i)
	}
}

// BenchmarkAddRemove takes one of n entries out, any, and lets it wait anew.
func BenchmarkAddRemove(b *testing.B) {
	for _, c := range contestants() {
		for _, n := range sizes() {
			b.Run(c.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				q, bytes := full(c, n)
				defer empty(q, n)
				which, waits := random(int64(n)), random(int64(time.Minute))
				i, before := 0, processorTime(b)
				for b.Loop() {
					q.stop(int(which[i%len(which)]))
					q.start(int(which[i%len(which)]), time.Minute+time.Duration(waits[i%len(waits)]))
					i++
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(i), "cpu-ns/op")
				if n > 1 {
					b.ReportMetric(bytes, "B/entry")
				}
			})
		}
	}
}

// BenchmarkAddAdvance goes on to the next departure, in virtual time, and lets what
// departs wait anew.
func BenchmarkAddAdvance(b *testing.B) {
	for _, c := range contestants() {
		for _, n := range sizes() {
			if _, ok := c.make(0).(virtual); !ok {
				continue
			}
			b.Run(c.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				q, _ := full(c, n)
				v, waits, i := q.(virtual), random(int64(time.Minute)), 0
				for range n { // One round, so that all stand as they do in the long run.
					v.next(time.Duration(waits[i%len(waits)]))
					i++
				}
				before := processorTime(b)
				for b.Loop() {
					v.next(time.Duration(waits[i%len(waits)]))
					i++
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(i-n), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkParallel starts and stops from all processors at once.
func BenchmarkParallel(b *testing.B) {
	for _, c := range contestants()[2:] {
		b.Run(c.name, func(b *testing.B) {
			const n = 1 << 16
			q, _ := full(c, n)
			defer empty(q, n)
			waits := random(int64(time.Minute))
			var goroutines atomic.Int64
			before := processorTime(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				own := int(goroutines.Add(1)) % 8 * (n / 8)
				for i := 0; pb.Next(); i++ {
					q.stop(own + i%(n/8))
					q.start(own+i%(n/8), time.Minute+time.Duration(waits[i%len(waits)]))
				}
			})
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkMoveDown moves a million entries down from one slot, the worst that
// there is, and gives what one of them costs, and a piece, for which Timers holds
// its lock.
func BenchmarkMoveDown(b *testing.B) {
	const n, at = 1_000_000, 5 * time.Minute
	entries, waits := make([]Entry, n), random(int64(2*time.Minute))
	order := rand.New(rand.NewPCG(1, 1)).Perm(n)
	var total time.Duration
	var pieces []time.Duration
	for b.Loop() {
		var w Wheel
		for i, k := range order {
			w.Add(&entries[k], at+time.Duration(waits[i%len(waits)]))
		}
		before := processorTime(b)
		for more := true; more; {
			start := time.Now()
			_, more = w.step(tickAt(at-5*time.Second), batch)
			pieces = append(pieces, time.Since(start))
		}
		total += processorTime(b) - before
		for i := range entries { // The next round's wheel is another one.
			w.Remove(&entries[i])
		}
	}
	slices.Sort(pieces)
	b.ReportMetric(float64(total)/float64(b.N)/n, "cpu-ns/entry")
	b.ReportMetric(float64(pieces[len(pieces)/2])/1e3, "µs/piece")
}

// BenchmarkDeparture lets a thousand wait for up to 20 ms, while others wait for
// long, and reports what one costs in processor time, by the system's account, and
// how late it departs.
func BenchmarkDeparture(b *testing.B) {
	wait := map[string]func(t *Timers, done *sync.WaitGroup, d time.Duration, late *time.Duration){
		"Timers.Start": func(t *Timers, done *sync.WaitGroup, d time.Duration, late *time.Duration) {
			due := time.Now().Add(d)
			t.Start(&Entry{Fire: func() { *late = time.Since(due); done.Done() }}, d)
		},
		"AfterFunc": func(_ *Timers, done *sync.WaitGroup, d time.Duration, late *time.Duration) {
			due := time.Now().Add(d)
			time.AfterFunc(d, func() { *late = time.Since(due); done.Done() })
		},
		"Timers and a channel": func(t *Timers, done *sync.WaitGroup, d time.Duration, late *time.Duration) {
			go func() {
				due := time.Now().Add(d)
				departed := make(chan struct{}, 1)
				t.Start(&Entry{Fire: func() { departed <- struct{}{} }}, d)
				<-departed
				*late = time.Since(due)
				done.Done()
			}()
		},
		"NewTimer": func(_ *Timers, done *sync.WaitGroup, d time.Duration, late *time.Duration) {
			go func() {
				due := time.Now().Add(d)
				<-time.NewTimer(d).C
				*late = time.Since(due)
				done.Done()
			}()
		},
	}
	for _, name := range []string{"Timers.Start", "AfterFunc", "Timers.Wait", "NewTimer"} {
		for _, n := range sizes() {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				c := contestants()[2]
				if name == "AfterFunc" || name == "NewTimer" {
					c = contestants()[3]
				}
				q, _ := full(c, n)
				defer empty(q, n)
				timers := NewTimers(nil)
				if t, ok := q.(*timersQueue); ok {
					timers = t.timers
				}
				departures(b, func(done *sync.WaitGroup, d time.Duration, late *time.Duration) { wait[name](timers, done, d, late) })
			})
		}
	}
}

// waiting lets one wait for d, and notes how late it departs.
type waiting func(done *sync.WaitGroup, d time.Duration, late *time.Duration)

func departures(b *testing.B, wait waiting) {
	b.Helper()
	const each = 1000
	waits := random(int64(20 * time.Millisecond))
	var all []time.Duration
	before := processorTime(b)
	for b.Loop() {
		all = append(all, round(wait, waits[len(all)%(len(waits)-each):][:each])...)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(len(all)), "cpu-ns/wait")
	reportLate(b, all)
}

// round lets several wait, until all have departed.
func round(wait waiting, waits []int64) []time.Duration {
	var done sync.WaitGroup
	late := make([]time.Duration, len(waits))
	done.Add(len(waits))
	for i, d := range waits {
		wait(&done, time.Duration(d), &late[i])
	}
	done.Wait()
	return late
}

func reportLate(b *testing.B, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2])/1e6, "ms-late")
	b.ReportMetric(float64(all[len(all)*99/100])/1e6, "ms-late-p99")
}

// BenchmarkBesideAMove shows how late others depart while a million entries move
// down together, at about the end of its four seconds.
func BenchmarkBesideAMove(b *testing.B) {
	for b.Loop() {
		const n = 1_000_000
		t, entries, waits := NewTimers(nil), make([]Entry, n), random(int64(3500*time.Millisecond))
		for i, k := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			t.Start(&entries[k], 8500*time.Millisecond+time.Duration(waits[i]))
		}
		short := random(int64(20 * time.Millisecond))[:200]
		var all []time.Duration
		for start := time.Now(); time.Since(start) < 4200*time.Millisecond; {
			all = append(all, round(func(done *sync.WaitGroup, d time.Duration, late *time.Duration) {
				due := time.Now().Add(d)
				t.Start(&Entry{Fire: func() { *late = time.Since(due); done.Done() }}, d)
			}, short)...)
		}
		b.StopTimer()
		reportLate(b, all)
		for i := range entries {
			t.Stop(&entries[i])
		}
		b.StartTimer()
	}
}
