package wheel

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/property"
)

// twin is a slow wheel: a slice that is sorted at every Add.
type twin struct {
	tick    int64
	entries []twinEntry
}

type twinEntry struct {
	e    *Entry
	tick int64
}

func (w *twin) add(e *Entry, at time.Duration) {
	w.remove(e)
	tick := at.Milliseconds()
	for time.Duration(tick)*time.Millisecond < at {
		tick++
	}
	w.entries = append(w.entries, twinEntry{e, max(tick, w.tick)})
	slices.SortStableFunc(w.entries, func(a, b twinEntry) int { return cmp.Compare(a.tick, b.tick) })
}

func (w *twin) remove(e *Entry) bool {
	before := len(w.entries)
	w.entries = slices.DeleteFunc(w.entries, func(t twinEntry) bool { return t.e == e })
	return len(w.entries) < before
}

func (w *twin) pop(now time.Duration) *Entry {
	until := max(w.tick, int64(now/Tick))
	if len(w.entries) == 0 || w.entries[0].tick > until {
		w.tick = until
		return nil
	}
	first := w.entries[0]
	w.entries = w.entries[1:]
	w.tick = first.tick
	return first.e
}

// script is a source of steps: package property, or the bytes of a fuzzer.
type script interface{ below(n int64) int64 }

type drawn struct{ *property.T }

func (d drawn) below(n int64) int64 { return property.Int64Range(0, n-1).Draw(d.T, "n") }

// written takes its numbers from bytes, as many bytes as each number needs.
type written struct{ text []byte }

func (w *written) below(n int64) int64 {
	var v int64
	for size := int64(1); size < n && len(w.text) > 0; size <<= 8 {
		v = v<<8 | int64(w.text[0])
		w.text = w.text[1:]
		if size >= 1<<48 {
			break
		}
	}
	return (v & math.MaxInt64) % n
}

// reporter has the common methods of property.T and testing.T.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestTwin runs random steps on a wheel and its twin. Both yield the same entries in the same
// order.
func TestTwin(t *testing.T) {
	property.Check(t, func(r *property.T) { play(r, drawn{r}, property.IntRange(20, 300).Draw(r, "steps")) })
}

// FuzzTwin takes the steps from the fuzzer.
func FuzzTwin(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))
	f.Add([]byte("\x00\x00\x03\x10\x00\x01\x03\x10\x05\x00\x04\x00\x01\x03\x10\x07\x05\x00\x04\xff\x02\x00"))
	f.Fuzz(func(t *testing.T, text []byte) { play(t, &written{text}, min(len(text)/2, 200)) })
}

// game is a wheel, its twin, and the entries of a test.
type game struct {
	reporter

	wheel   Wheel
	twin    twin
	now     time.Duration
	entries [12]Entry
}

func play(r reporter, s script, steps int) {
	r.Helper()
	g := &game{reporter: r}
	for range steps {
		e := &g.entries[s.below(int64(len(g.entries)))]
		switch s.below(10) {
		case 0, 1:
			g.add(e, g.now+span(s))
		case 2:
			g.add(e, cluster(g.now, s))
		case 3:
			g.remove(e)
		case 4:
			g.now += span(s)
			g.advance(g.now, s)
		case 5:
			g.now += span(s)
			g.piece(int(1 + s.below(3)))
		case 6:
			g.advance(g.now-span(s), s) // The caller's clock steps back.
		case 7:
			g.wheel.skip(tickAt(g.now + span(s)))
			g.follow(math.MaxInt64)
		case 8:
			g.now = max(g.now, cluster(g.now, s)-time.Duration(s.below(ringSlots))*Tick)
			g.piece(1)
		default:
			g.next()
		}
		g.audit()
	}
	g.now += 400 * 24 * time.Hour
	g.advance(g.now, &written{})
	if g.wheel.Len() != 0 {
		g.Fatalf("%d entries are left a year after all departures", g.wheel.Len())
	}
}

// span gives zero, less than a tick, some ticks near the edges of the levels, or up to a year.
// Sometimes it gives a time in the past.
func span(s script) time.Duration {
	ticks := func(n int64) time.Duration { return time.Duration(n) * Tick }
	switch s.below(8) {
	case 0:
		return 0
	case 1:
		return time.Duration(s.below(int64(2 * Tick)))
	case 2:
		return ticks(s.below(130))
	case 3:
		return ticks(1<<(digitBits*(1+s.below(3))) + s.below(5) - 2)
	case 4:
		return -ticks(s.below(70))
	case 5:
		return time.Duration(s.below(int64(20 * time.Second)))
	case 6:
		return ticks(slack*s.below(4) + s.below(5) - 2)
	default:
		return time.Duration(s.below(int64(365 * 24 * time.Hour)))
	}
}

// cluster gives one of a few ticks at the beginning of the next slot of a high level, so that
// several entries share a slot and a tick.
func cluster(now time.Duration, s script) time.Duration {
	const width = ringSlots
	slot := tickAt(now)/width + 1 + s.below(2)
	return timeOf(slot*width + s.below(3)*(width/levelSlots-1))
}

func (g *game) add(e *Entry, at time.Duration) {
	g.wheel.Add(e, at)
	g.twin.add(e, at)
}

func (g *game) remove(e *Entry) {
	if got, want := g.wheel.Remove(e), g.twin.remove(e); got != want {
		g.Fatalf("Remove(%s) = %v, want %v", g.name(e), got, want)
	}
}

// advance compares the yielded entries. Its loop sometimes adds and removes entries, or ends
// early.
func (g *game) advance(now time.Duration, s script) {
	for e := range g.wheel.Advance(now) {
		if want := g.twin.pop(now); e != want {
			g.Fatalf("at %v: %s is yielded, want %s", now, g.name(e), g.name(want))
		}
		switch other := &g.entries[s.below(int64(len(g.entries)))]; s.below(8) {
		case 5:
			g.remove(other)
		case 6:
			g.add(other, now+1+max(0, span(s)))
		case 7:
			return
		}
	}
	if want := g.twin.pop(now); want != nil {
		g.Fatalf("at %v: nothing is yielded, want %s", now, g.name(want))
	}
}

// piece does one batch of the work, as Timers does under one lock. It may end in the middle of a
// move, at the time of the slot.
func (g *game) piece(batch int) {
	e, more := g.wheel.step(tickAt(g.now), batch)
	if e == nil && more {
		g.follow(max(g.twin.tick, tickAt(g.now)))
		return
	}
	if want := g.twin.pop(g.now); e != want {
		g.Fatalf("at %v: a piece yields %s, want %s", g.now, g.name(e), g.name(want))
	}
}

// follow advances the twin to the wheel's time, which is at most the given tick and before the
// next departure.
func (g *game) follow(to int64) {
	if len(g.twin.entries) > 0 {
		to = min(to, g.twin.entries[0].tick)
	}
	if g.wheel.now < g.twin.tick || g.wheel.now > to {
		g.Fatalf("the time went from tick %d to %d, and may go to %d", g.twin.tick, g.wheel.now, to)
	}
	g.twin.tick = g.wheel.now
}

// next advances from one Next to the next. No entry is due earlier, there are only a few Nexts,
// and they end at the tick of the first departure.
func (g *game) next() {
	for call := 0; ; call++ {
		at, ok := g.wheel.Next()
		if ok != (len(g.twin.entries) > 0) {
			g.Fatalf("Next says %v, with %d entries", ok, len(g.twin.entries))
		}
		if !ok {
			return
		}
		first := timeOf(g.twin.entries[0].tick)
		if at > first || call > levelCount+1 {
			g.Fatalf("Next is %v at call %d, and the first departure is at %v", at, call, first)
		}
		e, want := g.wheel.Pop(at), g.twin.pop(at)
		g.now = max(g.now, at)
		if e != want {
			g.Fatalf("Next is %v, which yields %s, want %s", at, g.name(e), g.name(want))
		}
		if e != nil {
			return
		}
	}
}

func (g *game) name(e *Entry) string {
	for i := range g.entries {
		if e == &g.entries[i] {
			return fmt.Sprintf("entry %d", i)
		}
	}
	return "nothing"
}

// audit checks the inner state of the wheel: the lists in which the entries should be, and all
// bits. A superfluous bit shows a list in a wrong place.
func (g *game) audit() {
	w, count, seen := &g.wheel, 0, make(map[*list]bool)
	if w.far.tick < w.now || w.far.tick > w.now+lead {
		g.Fatalf("at tick %d the horizon is %d", w.now, w.far.tick)
	}
	for _, t := range g.twin.entries {
		if l, marked := g.home(t.e); !seen[l] {
			seen[l] = true
			count += g.auditList(l, marked)
		}
	}
	marks := 0
	for level, used := range w.far.used {
		marks += bits.OnesCount64(used)
		if (used != 0) != (w.far.filled>>level&1 == 1) {
			g.Fatalf("level %d: its bit is wrong", level)
		}
	}
	for word, used := range &w.near.used {
		marks += bits.OnesCount64(used)
		if (used != 0) != (w.near.filled>>word&1 == 1) {
			g.Fatalf("word %d of the ring: its bit is wrong", word)
		}
	}
	if count != w.Len() || count != len(g.twin.entries) || marks != len(seen) {
		g.Fatalf("%d entries hang in the wheel, in %d lists of %d, Len is %d, want %d",
			count, len(seen), marks, w.Len(), len(g.twin.entries))
	}
}

// home gives the list in which an entry should be, and its bit.
func (g *game) home(e *Entry) (l *list, marked bool) {
	w := &g.wheel
	if e.wheel != w || e.tick < w.now {
		g.Fatalf("%s of tick %d is not in the wheel, at tick %d", g.name(e), e.tick, w.now)
	}
	if !w.far.holds(e.tick) {
		slot := e.tick % ringSlots
		return &w.near.lists[slot], w.near.used[slot/wordBits]>>(slot%wordBits)&1 == 1
	}
	level, slot := int(e.slot)/levelSlots, int(e.slot)
	moves := level == w.far.moving && slot == w.far.slotOf(w.far.tick, level) && w.far.levelOf(e.tick) < level
	if slot != w.far.slotOf(e.tick, level) || w.far.levelOf(e.tick) != level && !moves {
		g.Fatalf("%s of tick %d hangs in slot %d, with the horizon at %d", g.name(e), e.tick, slot, w.far.tick)
	}
	return &w.far.lists[slot], w.far.used[level]>>(slot%levelSlots)&1 == 1
}

// auditList counts the entries of a list and checks that each belongs there.
func (g *game) auditList(l *list, marked bool) (count int) {
	var last *Entry
	for e := l.first; e != nil; last, e = e, e.next {
		count++
		if home, _ := g.home(e); home != l || e.prev != last {
			g.Fatalf("%s is linked wrongly: %+v", g.name(e), *e)
		}
	}
	if l.last != last || !marked {
		g.Fatalf("the last entry of a list or its bit is wrong: %+v, %v", *l, marked)
	}
	return count
}
