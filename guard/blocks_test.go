package guard

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBlocksEqualSlices makes random copies and changes. Each copy has what a cloned slice has, and former copies stay.
func TestBlocksEqualSlices(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	type version struct {
		list blocks[int]
		twin []int
	}
	all := []version{{}}
	for range 300 {
		from := &all[random.IntN(len(all))]
		v := version{from.list.copied(), slices.Clone(from.twin)}
		for range random.IntN(20) {
			switch n, value := uint32(random.IntN(len(v.twin)+1)), random.Int(); {
			case int(n) == len(v.twin):
				v.twin = append(v.twin, value)
				if at := v.list.add(value); at != n {
					t.Fatalf("the entry added got number %d, want %d", at, n)
				}
			default:
				v.twin[n], *v.list.change(n) = value, value
			}
		}
		if random.IntN(5) == 0 {
			n := random.IntN(3 * blockSize)
			v.list.resize(n)
			v.twin = append(v.twin, make([]int, max(0, n-len(v.twin)))...)[:n]
		}
		all = append(all, v)
	}
	for i := range all {
		var got []int
		for n := range uint32(all[i].list.n) {
			got = append(got, *all[i].list.at(n))
		}
		if !slices.Equal(got, all[i].twin) {
			t.Fatalf("copy %d: got %v, want %v", i, got, all[i].twin)
		}
	}
}

// TestNumbersEqualMaps is TestBlocksEqualSlices for numbers by keys.
func TestNumbersEqualMaps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	type version struct {
		numbers numbers
		twin    map[textKey]uint32
	}
	all := []version{{twin: map[textKey]uint32{}}}
	keyAt := func(n int) (key textKey) {
		binary.LittleEndian.PutUint32(key[:], uint32(n))
		return key
	}
	for range 300 {
		from := &all[random.IntN(len(all))]
		v := version{from.numbers.copied(), maps.Clone(from.twin)}
		for range random.IntN(20) {
			key, n := keyAt(random.IntN(700)), random.Uint32()
			if random.IntN(3) == 0 {
				delete(v.twin, key)
				v.numbers.remove(key)
			} else {
				v.twin[key] = n
				v.numbers.set(key, n)
			}
		}
		all = append(all, v)
	}
	for i := range all {
		for n := range 700 {
			got, known := all[i].numbers.get(keyAt(n))
			if want, wanted := all[i].twin[keyAt(n)]; got != want || known != wanted {
				t.Fatalf("copy %d: key %d: got %d, %v, want %d, %v", i, n, got, known, want, wanted)
			}
		}
	}
}
