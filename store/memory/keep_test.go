package memory

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestKeysThatKeepTheirState: KeysThatKeep gives a number of keys. Each of these keys is used
// again and again, in all windows of a rule. At least 99.9 % of the keys keep their counts.
// The hashes of a table are random, and keys lose their state several at a time. The test
// therefore fills enough tables that 0.1 % is far from the usual 0.02 %.
func TestKeysThatKeepTheirState(t *testing.T) {
	for _, size := range []int64{1 << 20, 4 << 20} {
		for _, windows := range []int{1, 2, 3, 4, 8, 34} {
			t.Run(fmt.Sprintf("%d MiB, %d windows", size>>20, windows), func(t *testing.T) {
				keys, lost := KeysThatKeep(size/placeBytes, windows), int64(0)
				tables := max(1, min(40_000, 400_000/int64(windows))/keys)
				if race.On {
					tables = 1 // The loss is counted in the run without the detector.
				}
				for range tables {
					lost += lostOf(t, size, keys, windows)
				}
				if keys *= tables; lost*1000 > keys && !race.On {
					t.Errorf("%d of %d keys have lost a state, want at most 0.1 %%", lost, keys)
				}
			})
		}
	}
}

// TestMoreKeysLoseTheirState: KeysThatKeep gives a number that is near the largest possible.
func TestMoreKeysLoseTheirState(t *testing.T) {
	const size = 4 << 20
	keys := KeysThatKeep(size/placeBytes, 1) * 5 / 4
	if lost := lostOf(t, size, keys, 1); lost*1000 < keys {
		t.Errorf("%d of %d keys have lost their state: the number can be greater", lost, keys)
	}
}

// lostOf counts each window of each key three times. It gives the number of keys that lost
// the count of a window in between.
func lostOf(t *testing.T, size, keys int64, windows int) (lost int64) {
	t.Helper()
	s, err := New(Config{MaxMemory: size, BlockShare: -1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 24 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	for round := range int64(3) {
		for k := range keys {
			key, anew := strconv.FormatInt(k, 10), false
			for w := range windows {
				var d headgate.Decision
				if err := s.Take(&headgate.Op{Key: key, Policy: id, Window: uint8(w), Cost: 1}, &d); err != nil {
					t.Fatal(err)
				}
				anew = anew || d.Remaining != 9-round
			}
			if anew && round == 2 {
				lost++
			}
		}
	}
	return lost
}
