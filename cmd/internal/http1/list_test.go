package http1_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// TestListIsAMap does the same random changes to a List and to a http.Header: both have the same fields afterwards, and a List that
// was loaded stays sorted.
func TestListIsAMap(t *testing.T) {
	names := []string{"A", "B", "Content-Type", "X-Name", "Z"}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		var l http1.List
		h := http.Header{}
		if seed%2 == 0 {
			h = http.Header{"B": {"1", "2"}, "Y": {"3"}, "Empty": nil}
			l.Load(h)
			delete(h, "Empty") // It has no line.
		}
		for step := range 40 {
			name, value := names[random.IntN(len(names))], fmt.Sprint(step)
			switch random.IntN(5) {
			case 0:
				l.Add(name, value)
				h[name] = append(slices.Clone(h[name]), value)
			case 1:
				l.Put(name, value)
				h[name] = []string{value}
			case 2:
				l.Set(name, []string{value, "b"})
				h[name] = []string{value, "b"}
			case 3:
				l.Delete(name)
				delete(h, name)
			case 4:
				l.DeleteFunc(func(n string) bool { return n < name })
				for n := range h {
					if n < name {
						delete(h, n)
					}
				}
			}
			first, found := l.Lookup(name)
			if !reflect.DeepEqual(l.Header(), h) || found != (len(h[name]) > 0) || found && first != h[name][0] || l.Has(name) != found {
				t.Fatalf("seed %d, step %d: the list has %v, the map %v", seed, step, l.Header(), h)
			}
		}
		if seed%2 > 0 {
			continue
		}
		for i := 1; i < l.Len(); i++ {
			before, _ := l.Line(i - 1)
			if name, _ := l.Line(i); name < before {
				t.Fatalf("seed %d: %s stands behind %s", seed, name, before)
			}
		}
	}
}

// TestManyLines checks that Parse stops at MostListed lines, so that no header makes lookups long.
func TestManyLines(t *testing.T) {
	for _, lines := range []int{http1.MostListed, http1.MostListed + 1} {
		var l http1.List
		notes, ok := l.Parse(strings.Repeat("A: b\r\n", lines) + "\r\n")
		if fits := lines == http1.MostListed; ok != fits || notes.Many == fits {
			t.Errorf("%d lines: parsed %v, too many %v", lines, ok, notes.Many)
		}
	}
}
