package http1_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// TestAppendSorted checks the order of fields, and that a list with capacity is used again.
func TestAppendSorted(t *testing.T) {
	h := http.Header{"C": {"1"}, "A": {"2"}, "D": {"3"}, "B": {"4"}}
	skipped := "C"
	fields := make([]http1.Field, 0, len(h))
	allocs := testing.AllocsPerRun(100, func() {
		fields = http1.AppendSorted(append(fields[:0], http1.Field{Name: "Z"}), h, func(name string) bool { return name == skipped })
	})
	want := []http1.Field{{"Z", nil}, {"A", h["A"]}, {"B", h["B"]}, {"D", h["D"]}}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("got %q, want %q", fields, want)
	}
	if allocs > 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
