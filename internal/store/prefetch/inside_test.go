package prefetch

import (
	"math/big"
	"testing"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// TestSizes checks the memory that Config promises, and which fields share a cache line: a
// lock and the tags of its set, the counts of keys without a place, and a stash.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(place{}); n != 7*64 {
		t.Errorf("a key takes %d bytes", n)
	}
	if at := unsafe.Offsetof(set{}.places); at != 128 {
		t.Errorf("the places begin at %d", at)
	}
	if at, n := unsafe.Offsetof(place{}.stashes), unsafe.Sizeof(stash{}); at != 64 || n != 64 {
		t.Errorf("the stashes begin at %d and take %d each", at, n)
	}
}

// TestBorders: the first border after a time is the first whole nanosecond in another
// sub-window, for sub-windows of any length.
func TestBorders(t *testing.T) {
	property.Check(t, func(t *property.T) {
		g := grid{
			per:   uint64(property.Int64Range(1000, int64(400*24*time.Hour)).Draw(t, "per")),
			parts: uint64(property.IntRange(1, 256).Draw(t, "parts")),
		}
		now := headgate.Instant(property.Int64Range(0, 1<<62).Draw(t, "now"))
		window := func(t headgate.Instant) string {
			n := new(big.Int).Mul(big.NewInt(int64(t)), new(big.Int).SetUint64(g.parts))
			return n.Div(n, new(big.Int).SetUint64(g.per)).String()
		}
		border, ok := g.after(now)
		if !ok || border <= now || window(border) == window(now) || window(border-1) != window(now) {
			t.Fatalf("%+v after %d: %d, %v", g, now, border, ok)
		}
	})
	if _, ok := (grid{}).after(5); ok {
		t.Error("the zero grid has a border")
	}
}

// TestEstimates: estimates stay within the validity of the grant, whatever the clock reads.
func TestEstimates(t *testing.T) {
	st := stash{at: 1000, ceiling: 1100, arrived: 50}
	for now, want := range map[time.Duration]headgate.Instant{0: 1000, 50: 1000, 51: 1001, 149: 1099, 150: 1099, 1 << 40: 1099} {
		if got := st.estimate(now); got != want {
			t.Errorf("at %d: %d, want %d", now, got, want)
		}
	}
}

// TestNonces: a stash numbers as many takes as its bits allow. Further takes get no receipts.
func TestNonces(t *testing.T) {
	st := stash{nonce: 7<<seqBits | (1<<seqBits - 3)}
	if a, b := st.serve(2), st.serve(2); a != 8<<seqBits-3 || b != 0 || st.nonce>>seqBits != 7 {
		t.Errorf("%d, then %d, and the grant is %d", a, b, st.nonce>>seqBits)
	}
}

// TestDemand: half of the demand is forgotten in a hold. A pause forgets more. One request is
// no demand.
func TestDemand(t *testing.T) {
	p := place{hold: 100}
	p.note(0, 1)
	if got := p.expect(1); got != 0 {
		t.Errorf("a first request makes %v expected", got)
	}
	for now := time.Duration(1); now < 1000; now++ {
		p.note(now, 1)
	}
	if got := p.expect(0); got < 95 || got > 105 {
		t.Errorf("one a nanosecond makes %v expected in 100", got)
	}
	p.note(2000, 1)
	if got := p.expect(1); got > 11 {
		t.Errorf("after a pause of ten holds %v are expected", got)
	}
	p.note(1500, 1) // A step back of the clock has no effect.
	p.note(4000, 1)
	if got := p.expect(1); got > 1 {
		t.Errorf("after a long pause %v are expected", got)
	}
}
