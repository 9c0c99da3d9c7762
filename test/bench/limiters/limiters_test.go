package limiters

import (
	"testing"
	"time"
)

// TestKeyed shows that every side counts each key for itself, to the same limit.
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
				t.Errorf("three for each of 16 keys: got %+v, want all allowed", got)
			}
			if got := k.Take(keys, 0, 32); got.Denied != 32 {
				t.Errorf("two more: got %+v, want all denied", got)
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
				t.Errorf("three: got %+v, want all allowed", got)
			}
			if got := l.Take(2); !m.NeverDenies && got.Denied != 2 {
				t.Errorf("two more: got %+v, want both denied", got)
			}
		})
	}
}

// TestPacers shows that every side that waits keeps to its rate, and that the others
// are told at once.
func TestPacers(t *testing.T) {
	atOnce := Pacers(PaceOff, PaceFunc, XTimeAllow)
	waiting := Pacers(PaceEven, PacePID, PaceCallbacks, XTimeWait, UberTake)
	if len(atOnce) != 3 || len(waiting) != 5 {
		t.Fatalf("%d and %d sides have the names, want 3 and 5", len(atOnce), len(waiting))
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
		// Of 32 at 1000 a second 10 may have come while the machine was late, and one is due.
		if got, took := p.Take(32), time.Since(began); got.Allowed != 32 || took < 20*time.Millisecond {
			t.Errorf("%s: got %+v within %v, want 32 in 20 ms or more", m.Name, got, took)
		}
		p.Close()
	}
}
