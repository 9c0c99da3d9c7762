package report

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
)

// TestPaths checks that each path has its own name and its own count.
func TestPaths(t *testing.T) {
	var traffic Traffic
	names := map[string]Path{}
	for i, p := range Paths() {
		name := p.String()
		if other, found := names[name]; found {
			t.Errorf("paths %d and %d have the same name %s", other, p, name)
		}
		names[name] = p
		if !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(name) {
			t.Errorf("path %d: got the name %q, want lower-case words", p, name)
		}
		for range i + 1 {
			traffic.Served(p)
		}
	}
	for i, p := range Paths() {
		if got, want := traffic.ServedBy(p), uint64(i+1); got != want {
			t.Errorf("%v: got %d requests, want %d", p, got, want)
		}
	}
	if all := Paths(); len(all) != int(pathCount) || all[0] != PathFast || !slices.IsSorted(all) {
		t.Errorf("got paths %v, want %d in order, from %v on", all, pathCount, PathFast)
	}
}

// TestPathOutOfRange checks the text of a path that does not exist.
func TestPathOutOfRange(t *testing.T) {
	for _, p := range []Path{pathCount, 255} {
		if got, want := p.String(), fmt.Sprintf("path(%d)", uint8(p)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
