package oldest

import (
	"slices"
	"testing"
)

// TestFinder checks that elements come oldest first from one scan until all are returned. A
// scan that found nothing is not repeated at once.
func TestFinder(t *testing.T) {
	var f Finder[string]
	scans := 0
	set := map[string]int64{"b": 2, "c": 3, "a": 1}
	each := func(add func(string, int64)) {
		scans++
		for name, since := range set {
			add(name, since)
		}
	}
	var got []string
	for range 3 {
		name, since, ok := f.Next(10, each)
		if !ok || since != set[name] {
			t.Fatalf("got %q since %d, %v", name, since, ok)
		}
		got = append(got, name)
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) || scans != 1 {
		t.Errorf("got %v after %d scans, want a b c after 1", got, scans)
	}
	clear(set)
	later := int64(10 + pause)
	for range 100 {
		if _, _, ok := f.Next(later, each); ok {
			t.Fatal("an empty set returns an element")
		}
	}
	if scans != 2 {
		t.Errorf("%d scans, want 2: a scan that found nothing is repeated after a pause", scans)
	}
	set["d"] = 4
	if name, _, ok := f.Next(later+int64(pause), each); !ok || name != "d" {
		t.Errorf("after the pause: %q, %v", name, ok)
	}
}
