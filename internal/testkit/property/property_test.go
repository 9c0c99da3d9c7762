package property

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Every generator makes values of its own, reaches both ends, and does so within a few thousand values.
func TestRanges(t *testing.T) {
	for _, r := range [][2]int64{{0, 0}, {1, 2}, {-5, 5}, {1000, 1 << 62}, {math.MinInt64, math.MaxInt64}, {-9, -3}, {0, math.MaxInt64}} {
		seen := map[int64]bool{}
		c := &T{T: t, random: rand.New(rand.NewPCG(1, 2)), size: 10}
		for range 3000 {
			n := Int64Range(r[0], r[1]).next(c)
			if n < r[0] || n > r[1] {
				t.Fatalf("%d is not from %d to %d", n, r[0], r[1])
			}
			seen[n] = true
		}
		if !seen[r[0]] || !seen[r[1]] {
			t.Errorf("the ends of %v are missing", r)
		}
		if span := uint64(r[1]) - uint64(r[0]); uint64(len(seen)) < min(span, 999)+1 {
			t.Errorf("from %d to %d has %d values", r[0], r[1], len(seen))
		}
	}
}

func TestStringMatching(t *testing.T) {
	for _, expression := range []string{`[a-z0-9]{1,64}`, `(re:|not:|=|!)?[a-c=!~^*{}\[\]()|.+?$:/<>\\d -]{1,8}`, `a*b+c?|xy{2,}`} {
		whole := regexp.MustCompile(`^(?:` + expression + `)$`)
		Check(t, func(t *T) {
			if text := StringMatching(expression).Draw(t, "text"); !whole.MatchString(text) {
				t.Errorf("%q does not match %s", text, expression)
			}
		})
	}
}

func TestCollections(t *testing.T) {
	longest := 0
	Check(t, func(t *T) {
		list := DistinctSliceOfN(IntRange(0, 9), 2, 7).Draw(t, "list")
		if seen := map[int]bool{}; true {
			for _, v := range list {
				seen[v] = true
			}
			if len(seen) != len(list) || len(list) < 2 || len(list) > 7 {
				t.Errorf("%v is no list of 2 to 7 values", list)
			}
		}
		if m := MapOfN(Bool(), Byte(), 0, 3).Draw(t, "map"); len(m) > 2 {
			t.Errorf("%v has more keys than there are", m)
		}
		longest = max(longest, len(SliceOf(Uint32()).Draw(t, "any length")), len(MapOf(String(), Just(1)).Draw(t, "texts")))
	})
	if longest < runs/4 {
		t.Errorf("the longest slice has %d values", longest)
	}
}

// A failing case names its seed and values, and the seed repeats it.
func TestSeedRepeatsCase(t *testing.T) {
	var first []string
	t.Setenv(seedVariable, "4242")
	for range 2 {
		var drawn []string
		Check(t, func(t *T) {
			IntRange(0, 1<<40).Draw(t, "n")
			String().Draw(t, "text")
			drawn = t.drawn
		})
		if first == nil {
			first = drawn
		}
		if strings.Join(first, "\n") != strings.Join(drawn, "\n") || len(drawn) != 2 || !strings.HasPrefix(drawn[0], "\tn: ") {
			t.Errorf("drawn first %q, and again %q", first, drawn)
		}
	}
}
