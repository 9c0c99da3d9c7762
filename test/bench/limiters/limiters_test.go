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
