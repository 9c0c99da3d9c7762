package limiters

import (
	"testing"
	"time"
)

// TestKeyed checks that each side applies the same limit to each key separately.
func TestKeyed(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}
	makers := append(KeyedLimiters(), HeadgateTakeMany(), ThrottledBounded(), FairShare(keys))
	for _, m := range makers {
		t.Run(m.Name, func(t *testing.T) {
			k, err := m.New(Limit{Count: 3, Per: time.Hour, Burst: 3}, Room{Keys: 1024})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			if got := k.Take(keys, 0, 48); got.Allowed != 48 {
				t.Errorf("3 requests for each of 16 keys: got %+v, want all allowed", got)
			}
			if got := k.Take(keys, 0, 32); got.Denied != 32 {
				t.Errorf("2 further requests for each key: got %+v, want all denied", got)
			}
		})
	}
}

func TestLone(t *testing.T) {
	for _, m := range LoneLimiters() {
		t.Run(m.Name, func(t *testing.T) {
			l, err := m.New(Limit{Count: 3, Per: time.Hour, Burst: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Take(3); got.Allowed != 3 {
				t.Errorf("3 requests: got %+v, want all allowed", got)
			}
			if got := l.Take(2); !m.NeverDenies && got.Denied != 2 {
				t.Errorf("2 further requests: got %+v, want both denied", got)
			}
		})
	}
}

// TestPacers checks that the sides that wait keep to their rate, and that the other sides
// do not wait.
func TestPacers(t *testing.T) {
	atOnce := Pacers(PaceOff, PaceFunc, XTimeAllow)
	waiting := Pacers(PaceEven, PacePID, PaceCallbacks, XTimeWait, UberTake)
	if len(atOnce) != 3 || len(waiting) != 5 {
		t.Fatalf("got %d pacers that do not wait and %d that wait, want 3 and 5", len(atOnce), len(waiting))
	}
	for _, m := range append(atOnce, waiting...) {
		p, err := m.New(1e9)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Take(32); got.Allowed != 32 {
			t.Errorf("%s: got %+v, want all allowed", m.Name, got)
		}
		p.Close()
	}
	for _, m := range waiting {
		p, err := m.New(1000)
		if err != nil {
			t.Fatal(err)
		}
		p.Drain()
		began := time.Now()
		// On a delayed machine, up to 10 of the 32 permits have accumulated, and one is due. The
		// other 21 permits take at least 20 ms at 1000 a second.
		if got, took := p.Take(32), time.Since(began); got.Allowed != 32 || took < 20*time.Millisecond {
			t.Errorf("%s: got %+v in %v, want 32 allowed in at least 20 ms", m.Name, got, took)
		}
		p.Close()
	}
}
