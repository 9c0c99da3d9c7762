package order

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
)

// Bounds of the lines that wait.
const (
	// MaxLines and MaxBytes bound the lines of a Window. A window of 5 minutes holds 3,300 requests a second.
	MaxLines = 1_000_000
	MaxBytes = 96 << 20

	// chunkBytes is the unit of memory for texts. A bucket of a quiet second wastes most of a chunk: 300 of them are 5 MiB.
	chunkBytes = 16 << 10
	entryBytes = 24
	// maxSpare bounds the buckets and the chunks that are kept for others, and spareEntries the entries of such a bucket: 16 MiB of chunks
	// and at most 6 MiB of entries.
	maxSpare     = 1024
	spareEntries = 256
)

// Config has the settings of a Window.
type Config struct {
	// Reorder is how far arrivals may go back.
	Reorder time.Duration
	// MaxLines and MaxBytes bound the lines that wait; 0 is the constant of the same name.
	MaxLines int
	MaxBytes int64
}

// Line is a line whose turn has come.
type Line struct {
	// Spread and Together are the time of the line. They differ for lines with whole seconds: Spread puts line k of the n lines of a
	// second at k/n, and Together puts all of them at the beginning of the second.
	Spread, Together headgate.Instant
	// Payload is what Add got. It is valid until the next call of Next.
	Payload []byte
}

// Counts says what a Window could not put in order.
type Counts struct {
	// Late lines were further back than the window, and were taken at its edge.
	Late int64
	// Forced lines left before their time, because too many lines waited.
	Forced int64
}

// Window holds lines until their turn. One goroutine uses a Window.
type Window struct {
	config  Config
	buckets map[int64]*bucket
	seconds sim.Queue[int64] // of buckets
	last    *bucket          // the one that got the line before
	counts  Counts
	lines   int
	bytes   int64
	number  uint32
	// due is the second before which all lines may go. edge is the time of the last line that went.
	due    int64
	edge   headgate.Instant
	leaves *bucket // whose lines Next gives
	next   int
	// free and spare are chunks and buckets to use again.
	free  [][]byte
	spare []*bucket
}

// bucket has the lines of one second.
type bucket struct {
	second  int64
	entries []entry
	chunks  [][]byte
	whole   int // lines with whole seconds
	base    headgate.Instant
}

// entry is a line in a bucket. Whole lines get their time when the bucket leaves.
type entry struct {
	at     headgate.Instant
	number uint32
	chunk  uint32
	from   uint32
	length uint32 // with the mark wholeMark
}

// wholeMark is in the length of lines with whole seconds.
const wholeMark = 1 << 31

// New returns an empty Window.
func New(c Config) *Window {
	c.MaxLines, c.MaxBytes = cmp.Or(c.MaxLines, MaxLines), cmp.Or(c.MaxBytes, MaxBytes)
	return &Window{
		config: c, buckets: map[int64]*bucket{}, due: secondOf(minTime), edge: minTime,
		seconds: sim.Queue[int64]{Before: func(a, b int64) bool { return a < b }},
	}
}

// minTime is before all times.
const minTime = headgate.Instant(-1 << 62)

func secondOf(t headgate.Instant) int64 {
	s := int64(t) / int64(time.Second)
	if t < 0 && int64(t)%int64(time.Second) != 0 {
		s--
	}
	return s
}

func startOf(second int64) headgate.Instant { return headgate.Instant(second * int64(time.Second)) }

// Add takes a line with its arrival. A whole line has no fraction of a second. The payload is copied. Add reports whether the line is
// late. Call Next until it reports false before the next Add.
func (w *Window) Add(at headgate.Instant, whole bool, payload []byte) (late bool) {
	if at < w.edge && (!whole || secondOf(at) < secondOf(w.edge)) {
		late = true
		w.counts.Late++
		at = w.edge
	}
	if start := startOf(w.due); at < start { // All lines before due have left, so the edge may be older.
		if !late {
			w.counts.Late++
		}
		late, at = true, start
	}
	b := w.bucketOf(secondOf(at))
	e := entry{at: at, number: w.number, length: uint32(len(payload))}
	w.number++
	if whole {
		e.length |= wholeMark
		b.whole++
	}
	e.chunk, e.from = w.keep(b, payload)
	before := cap(b.entries)
	b.entries = append(b.entries, e)
	w.bytes += int64(cap(b.entries)-before) * entryBytes
	w.lines++
	return late
}

func (w *Window) bucketOf(second int64) *bucket {
	if w.last != nil && w.last.second == second {
		return w.last
	}
	b := w.buckets[second]
	if b == nil {
		if n := len(w.spare); n > 0 {
			b, w.spare = w.spare[n-1], w.spare[:n-1]
			b.second = second
		} else {
			b = &bucket{second: second}
		}
		w.bytes += int64(cap(b.entries)) * entryBytes
		w.buckets[second] = b
		w.seconds.Push(second)
	}
	w.last = b
	return b
}

// keep copies a payload into a chunk of the bucket.
func (w *Window) keep(b *bucket, payload []byte) (chunk, from uint32) {
	n := len(b.chunks)
	if n == 0 || len(b.chunks[n-1])+len(payload) > cap(b.chunks[n-1]) {
		b.chunks = append(b.chunks, w.chunk(len(payload)))
		n++
	}
	last := &b.chunks[n-1]
	from = uint32(len(*last))
	*last = append(*last, payload...)
	return uint32(n - 1), from
}

// chunk returns an empty chunk for at least length bytes.
func (w *Window) chunk(length int) []byte {
	if n := len(w.free); length <= chunkBytes && n > 0 {
		c := w.free[n-1]
		w.free = w.free[:n-1]
		w.bytes += chunkBytes
		return c[:0]
	}
	length = max(length, chunkBytes)
	w.bytes += int64(length)
	return make([]byte, 0, length)
}

// Advance says that lines before t minus the window are in the Window, as far as they are not late.
func (w *Window) Advance(t headgate.Instant) { w.due = max(w.due, secondOf(t.Add(-w.config.Reorder))) }

// Close says that there are no further lines.
func (w *Window) Close() { w.due = secondOf(1<<63 - 1) }

// First returns the second of the first line that waits, and 0 if none waits.
func (w *Window) First() headgate.Instant {
	if w.seconds.Len() == 0 {
		return 0
	}
	return startOf(w.seconds.First())
}

// Counts returns what could not be put in order so far.
func (w *Window) Counts() Counts { return w.counts }

// Next gives the next line whose turn has come, and reports false if there is none.
func (w *Window) Next(line *Line) bool {
	if w.leaves == nil && !w.leave() {
		return false
	}
	b := w.leaves
	if w.next == len(b.entries) {
		w.release()
		if !w.leave() {
			return false
		}
		b = w.leaves
	}
	e := &b.entries[w.next]
	w.next++
	length := e.length &^ wholeMark
	line.Spread, line.Together = e.at, e.at
	if e.length != length {
		line.Together = b.base
	}
	line.Payload = b.chunks[e.chunk][e.from : e.from+length]
	return true
}

// leave finds the next bucket that leaves, and orders its lines.
func (w *Window) leave() bool {
	full := w.lines > w.config.MaxLines || w.bytes > w.config.MaxBytes
	if w.seconds.Len() == 0 || !full && w.seconds.First() >= w.due {
		return false
	}
	second := w.seconds.Pop()
	b := w.buckets[second]
	delete(w.buckets, second)
	if w.last == b {
		w.last = nil
	}
	if second >= w.due {
		w.counts.Forced += int64(len(b.entries))
	}
	b.place(max(startOf(second), w.edge))
	w.leaves, w.next = b, 0
	w.edge = max(w.edge, b.entries[len(b.entries)-1].at)
	return true
}

// place gives whole lines their times, and sorts the lines. Whole lines begin at base: an earlier part of the second may have left.
func (b *bucket) place(base headgate.Instant) {
	b.base = base
	rest, k, sorted := int64(startOf(b.second+1).Sub(base)), int64(0), true
	for i := range b.entries {
		e := &b.entries[i]
		if e.length&wholeMark != 0 {
			e.at = base + headgate.Instant(rest/int64(b.whole)*k+rest%int64(b.whole)*k/int64(b.whole))
			k++
		}
		sorted = sorted && (i == 0 || b.entries[i-1].at <= e.at)
	}
	if !sorted {
		slices.SortFunc(b.entries, func(x, y entry) int {
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.number, y.number))
		})
	}
}

// release keeps the memory of a bucket for others.
func (w *Window) release() {
	b := w.leaves
	w.leaves = nil
	w.lines -= len(b.entries)
	w.bytes -= int64(cap(b.entries)) * entryBytes
	for _, c := range b.chunks {
		w.bytes -= int64(cap(c))
		if cap(c) == chunkBytes && len(w.free) < maxSpare {
			w.free = append(w.free, c)
		}
	}
	if cap(b.entries) <= spareEntries && len(w.spare) < maxSpare {
		clear(b.chunks)
		b.entries, b.chunks, b.whole = b.entries[:0], b.chunks[:0], 0
		w.spare = append(w.spare, b)
	}
}
