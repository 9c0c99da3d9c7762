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

// The benchmarks of docs/decisions/0007 compare the wheel with a heap of entries and with one
// timer of the runtime for each entry. They report processor time, because other processes on
// the machine disturb it less than elapsed time.
//
//	go test -run '^$' -bench . -benchtime 100ms -count 5 ./guard/internal/wheel

// queue is a kind of queue with a number of waiting entries.
type queue interface {
	// start makes entry i wait until at. stop ends the wait.
	start(i int, at time.Duration)
	stop(i int)
}

// virtual is a queue with time as an argument. next removes the first entry and adds it again, d
// after its departure.
type virtual interface {
	queue
	next(d time.Duration)
}

// contestant is a kind of queue. make gets the number of entries.
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

// heapQueue uses container/heap over pointers to entries that know their index.
type heapQueue struct {
	entries []heapEntry
	heap    entryHeap
}

type heapEntry struct {
	at    time.Duration
	index int
	_     func() // the same size as Entry.Fire
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

// timersQueue and runtimeQueue use real time: each time is a wait from now on.
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

// sizes are the numbers of waiting entries.
func sizes() []int { return []int{1, 1000, 1_000_000} }

// random gives numbers below a bound, for waits or indexes. There are so many that a million
// entries do not stay in the processor's cache.
func random(below int64) []int64 {
	r, all := rand.New(rand.NewPCG(1, 1)), make([]int64, 1<<20)
	for i := range all {
		all[i] = r.Int64N(below)
	}
	return all
}

// full makes a queue of n entries that wait for one to two minutes, so none fires during a
// benchmark. It also gives the heap bytes of each entry.
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

// empty stops all entries, so that later benchmarks run without them.
func empty(q queue, n int) {
	for i := range n {
		q.stop(i)
	}
}

// BenchmarkAddRemove removes one random entry of n and adds it again.
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

// BenchmarkAddAdvance advances virtual time to the next departure, and adds the departed entries
// again.
func BenchmarkAddAdvance(b *testing.B) {
	for _, c := range contestants() {
		for _, n := range sizes() {
			if _, ok := c.make(0).(virtual); !ok {
				continue
			}
			b.Run(c.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				q, _ := full(c, n)
				v, waits, i := q.(virtual), random(int64(time.Minute)), 0
				for range n { // After one round, the entries are distributed as in the long run.
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

// BenchmarkParallel starts and stops entries on all processors at once.
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

// BenchmarkMoveDown moves a million entries down from one slot, which is the worst case. It
// reports the cost of one entry, and of one batch. Timers holds its lock for one batch.
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
		for i := range entries { // The next round uses another wheel.
			w.Remove(&entries[i])
		}
	}
	slices.Sort(pieces)
	b.ReportMetric(float64(total)/float64(b.N)/n, "cpu-ns/entry")
	b.ReportMetric(float64(pieces[len(pieces)/2])/1e3, "µs/piece")
}

// BenchmarkDeparture has a thousand entries that wait for up to 20 ms beside others that wait
// for long. It reports the processor time of one departure, and the delay.
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

// waiting waits for d and records the delay of the departure.
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

// round runs several waits until all have departed.
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

// BenchmarkBesideAMove reports the delay of other departures while a million entries move down
// together, near the end of its four seconds.
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
