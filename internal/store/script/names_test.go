package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// hostileKeys are keys with which a client could try to reach other keys.
func hostileKeys() []string {
	return []string{
		"", "a", "{a}", "}{", "{}", "a\x00", "hg3:{a}:0t1", "hg3:{a}:0t1:l", "\r\nFLUSHALL\r\n", "\xff\xfe", "*", " ",
		strings.Repeat("x", 1<<20),
	}
}

// TestPlacesAreNames: PlaceIn is the inverse of Words, and each place has its own names.
func TestPlacesAreNames(t *testing.T) {
	for _, slots := range []int{0, 1, 7} {
		n, err := NewNames(slots)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, key := range hostileKeys() {
			for _, window := range []uint8{0, 1, 255} {
				p := PlaceOf(key, window)
				s := state{p, limit.Family{Algorithm: headgate.SlidingWindow, Per: limit.MaxPer}}
				if PlaceIn(p.Words()) != p {
					t.Errorf("%.20q: the place %v is decoded as %v", key, p, PlaceIn(p.Words()))
				}
				for _, name := range []string{
					string(n.appendState(nil, s)), string(n.appendList(nil, s)), n.noteOf(s, 1), n.noteOf(s, 1<<63),
				} {
					plain := strings.Trim(name, "-_:{}0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
					if !plain || !strings.HasPrefix(name, "hg3:{") || strings.Count(name, "{") != 1 || len(name) > 64 || names[name] {
						t.Errorf("key %.20q has the invalid or repeated name %q", key, name)
					}
					names[name] = true
				}
			}
		}
	}
}

// TestSlotsAreTheServers: Slot gives the same slots as CLUSTER KEYSLOT, for every name of a place.
// With few slots, the slots are spread evenly.
func TestSlotsAreTheServers(t *testing.T) {
	server := testserver.Start(t, "--cluster-enabled", "yes")
	for _, slots := range []int{0, 1, 2, 3, 256, 16383, 16384} {
		n, err := NewNames(slots)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint16]bool{}
		for i := range 100 {
			p := PlaceOf(fmt.Sprint(i), uint8(i))
			s := state{p, limit.Family{Algorithm: headgate.Algorithm(i % 6), Per: time.Duration(i)}}
			seen[n.Slot(p)] = true
			for _, name := range []string{string(n.appendState(nil, s)), string(n.appendList(nil, s)), n.noteOf(s, 7)} {
				got, err := server.Do("CLUSTER", "KEYSLOT", name)
				if err != nil || got != any(int64(n.Slot(p))) {
					t.Fatalf("%d slots: %s is in slot %d (%v), computed %d", slots, name, got, err, n.Slot(p))
				}
			}
		}
		if len(seen) > max(slots, 1) && slots > 0 || slots == 256 && len(seen) < 70 {
			t.Errorf("%d slots: a hundred keys are in %d slots", slots, len(seen))
		}
		for i, tag := range n.tags {
			if want := uint16(i * Slots / slots); crc16(tag)%Slots != want || n.slots[i] != want {
				t.Errorf("%d slots: tag %d, %q, is in slot %d", slots, i, tag, crc16(tag)%Slots)
			}
		}
		if sorted := slices.Sorted(slices.Values(n.tags)); len(slices.Compact(sorted)) != len(n.tags) {
			t.Errorf("%d slots: a tag is used twice", slots)
		}
	}
	for _, slots := range []int{-1, 16385} {
		if _, err := NewNames(slots); err == nil || !strings.Contains(err.Error(), "use 1 to 16384") {
			t.Errorf("%d slots: got error %v, want one with \"use 1 to 16384\"", slots, err)
		}
	}
}
