package order_test

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/replay/order"
)

const second = headgate.Instant(time.Second)

// seen is a line that left a window.
type seen struct {
	number           int
	spread, together headgate.Instant
}

func payload(number int) []byte { return binary.AppendUvarint(nil, uint64(number)) }

func drain(w *order.Window, all []seen) []seen {
	var line order.Line
	for w.Next(&line) {
		number, _ := binary.Uvarint(line.Payload)
		all = append(all, seen{int(number), line.Spread, line.Together})
	}
	return all
}

// TestWindowTellsAStory: lines of two seconds arrive mixed. Whole lines are spread over their second, and a late line is taken at the edge.
func TestWindowTellsAStory(t *testing.T) {
	t.Parallel()
	w := order.New(order.Config{Reorder: 2 * time.Second})
	var all []seen
	for number, step := range []struct {
		at    headgate.Instant
		whole bool
		late  bool
	}{
		{100 * second, true, false},
		{101*second + 700, false, false},
		{100 * second, true, false},
		{101*second + 300, false, false},
		{104 * second, true, false}, // Lines before 102 leave.
		{101 * second, true, true},
		{110 * second, true, false},
	} {
		if late := w.Add(step.at, step.whole, payload(number)); late != step.late {
			t.Errorf("line %d: late is %v", number, late)
		}
		w.Advance(step.at)
		all = drain(w, all)
	}
	w.Close()
	all = drain(w, all)
	want := []seen{
		{0, 100 * second, 100 * second},
		{2, 100*second + second/2, 100 * second},
		{3, 101*second + 300, 101*second + 300},
		{1, 101*second + 700, 101*second + 700},
		{5, 102 * second, 102 * second},
		{4, 104 * second, 104 * second},
		{6, 110 * second, 110 * second},
	}
	if !slices.Equal(all, want) {
		t.Errorf("lines leave as\n%v, want\n%v", all, want)
	}
	if got := w.Counts(); got != (order.Counts{Late: 1}) {
		t.Errorf("counts are %+v", got)
	}
}

// TestWindowIsASort compares the window with a stable sort: lines that are moved by less than the window leave in the order of
// their arrival.
func TestWindowIsASort(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		lines := make([]seen, 2000)
		for i := range lines {
			at := headgate.Instant(random.Int64N(int64(300 * second)))
			lines[i] = seen{i, at, at}
		}
		// The written order: by the arrival and a delay of less than ten seconds.
		written := slices.Clone(lines)
		delays := make([]headgate.Instant, len(lines))
		for i := range delays {
			delays[i] = headgate.Instant(random.Int64N(int64(10 * second)))
		}
		slices.SortStableFunc(written, func(a, b seen) int {
			return cmp.Compare(a.spread+delays[a.number], b.spread+delays[b.number])
		})
		w := order.New(order.Config{Reorder: 11 * time.Second})
		var got []seen
		for _, l := range written {
			if w.Add(l.spread, false, payload(l.number)) {
				t.Fatalf("line %d is late", l.number)
			}
			w.Advance(l.spread)
			got = drain(w, got)
		}
		w.Close()
		got = drain(w, got)
		slices.SortStableFunc(written, func(a, b seen) int { return cmp.Compare(a.spread, b.spread) })
		if !slices.Equal(got, written) {
			t.Fatal("the window and a sort disagree")
		}
	}
}

// TestWindowIsBounded: when too many lines wait, the oldest leave before their time. Times never go back, and a second that leaves in
// parts stays within the second.
func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]order.Config{
		"lines": {Reorder: time.Hour, MaxLines: 100},
		"bytes": {Reorder: time.Hour, MaxBytes: 64 << 10},
	} {
		w := order.New(config)
		var all []seen
		for i := range 10_000 {
			w.Add(5*second, true, append(payload(i), make([]byte, 100)...))
			w.Advance(5 * second)
			all = drain(w, all)
		}
		w.Close()
		all = drain(w, all)
		if len(all) != 10_000 {
			t.Fatalf("%s: %d lines leave", name, len(all))
		}
		for i, l := range all {
			if l.number != i || l.spread < 5*second || l.spread >= 6*second || i > 0 && l.spread < all[i-1].spread {
				t.Fatalf("%s: line %d is %+v", name, i, l)
			}
		}
		if c := w.Counts(); c.Late != 0 || c.Forced < 9_000 {
			t.Errorf("%s: counts are %+v", name, c)
		}
	}
}
