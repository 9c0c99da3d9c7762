package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestTotalSize: the length of all texts is kept through changes, and a change beyond the bound says so.
func TestTotalSize(t *testing.T) {
	in := objects(t, sourcedFile)
	for _, c := range []source.Change{
		{All: true, Objects: []source.Object{
			object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"), object("customers/a", "{}"), object("customers/b", "{}"),
		}},
		{Objects: []source.Object{object("customers/a", "{note: longer}"), object("customers/c", "{}")}},
		{Objects: []source.Object{object("customers/a", "{note: x}")}, Deleted: []source.Key{object("customers/b", "").Key}},
	} {
		next, faults := in.With(c)
		if faults != nil {
			t.Fatal(faults)
		}
		want := 0
		for o := range next.Sourced {
			want += len(o.Text)
		}
		if in = next; in.size != want {
			t.Errorf("the size is %d, want %d", in.size, want)
		}
	}
	w := &objectChange{from: in, next: *in, changing: map[source.Key]bool{}}
	w.collect(source.Change{Objects: []source.Object{object("customers/d", "{note: xxxxx}")}})
	if w.bound(64); len(w.faults) != 1 {
		t.Fatalf("got %v", w.faults)
	}
	if got, want := w.faults[0].Headline(), "customers.d: the objects of the source would have 65 bytes: use at most 64B in total"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestParsedTogether: long texts are parsed in small groups, because their trees are large.
func TestParsedTogether(t *testing.T) {
	long := strings.Repeat(" ", source.MaxText-10)
	var all []source.Object
	for n := range race.Fewer(100, 20) {
		all = append(all, object(fmt.Sprintf("customers/c%03d", n), fmt.Sprintf("{note: %d}%s", n, long)))
	}
	p := &parsedObjects{rest: all}
	for _, o := range all {
		if parsed := p.next(o, func(string) bool { return false }); parsed.fault != nil || len(p.ready) > parsedBytes/source.MaxText+1 {
			t.Fatalf("%d objects were parsed together: %v", len(p.ready), parsed.fault)
		}
	}
}
