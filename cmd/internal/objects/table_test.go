package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

const file = `version: 1
source: {http: {url: http://127.0.0.1:1/x}}
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
`

const free = "{quotas: {api_calls: [{limit: 200/30d}]}}"

func fromFile(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newTable(t *testing.T, put func(*config.Objects) error) *Table {
	t.Helper()
	in, err := config.NewObjects(fromFile(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return NewTable(in, put)
}

func accept(*config.Objects) error { return nil }

// key reads a key like customers/acme.
func key(text string) source.Key {
	section, name, _ := strings.Cut(text, "/")
	for _, kind := range source.Kinds() {
		if kind.Section() == section {
			return source.Key{Kind: kind, Name: name}
		}
	}
	panic("no kind: " + text)
}

// change makes a change of pairs of keys and texts. A text of - deletes.
func change(all bool, pairs ...string) source.Change {
	c := source.Change{All: all}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "-" {
			c.Deleted = append(c.Deleted, key(pairs[i]))
			continue
		}
		c.Objects = append(c.Objects, source.Object{Key: key(pairs[i]), Text: pairs[i+1], Revision: 1})
	}
	return c
}

// inForce gives the objects of the source in force, without plans/free.
func inForce(t *Table) string {
	var all []string
	for o := range t.Objects().Sourced {
		if o.Key != key("plans/free") {
			all = append(all, o.Key.String()+"="+o.Text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func heldBack(t *Table) string {
	var all []string
	for _, h := range t.Held() {
		var keys []string
		for _, k := range h.Objects {
			keys = append(keys, k.String())
		}
		all = append(all, strings.Join(keys, "+"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestTable is the story of a source: each row is a change, what is then in force, and what is held back.
func TestTable(t *testing.T) {
	const paid, raw = "{after: meter, quotas: {api_calls: [{limit: 9/30d, hard: 20}]}}", "{quotas: {api_calls: [{limit: 9/30d}]}}"
	table := newTable(t, accept)
	for _, row := range []struct {
		name           string
		change         source.Change
		inForce, holds string
	}{
		{
			"the first read has one faulty customer", change(true, "plans/free", free, "customers/a", "{plan: fre}", "customers/b", "{}"),
			"customers/b={}", "customers/a",
		},
		{"it is corrected", change(false, "customers/a", "{plan: free}"), "customers/a={plan: free} customers/b={}", ""},
		{"a customer comes before its plan", change(false, "customers/a", "{plan: paid}"), "customers/a={plan: free} customers/b={}", "customers/a"},
		{
			"another change does not wait for it", change(false, "customers/b", "{note: x}"), "customers/a={plan: free} customers/b={note: x}",
			"customers/a",
		},
		{
			"the plan arrives, and both take effect", change(false, "plans/paid", paid),
			"customers/a={plan: paid} customers/b={note: x} plans/paid=" + paid, "",
		},
		{
			"a change with one faulty object is held back as a whole", change(false, "customers/b", "-", "customers/c", "{plan: fre}"),
			"customers/a={plan: paid} customers/b={note: x} plans/paid=" + paid, "customers/b+customers/c",
		},
		{
			"a newer version of one of them takes its place", change(false, "customers/c", "{}"),
			"customers/a={plan: paid} customers/c={} plans/paid=" + paid, "",
		},
		{"a plan in use is not deleted", change(false, "plans/paid", "-"), "customers/a={plan: paid} customers/c={} plans/paid=" + paid, "plans/paid"},
		{"until its customer has another one", change(false, "customers/a", "{plan: free}"), "customers/a={plan: free} customers/c={}", ""},
		{"two unrelated faults", change(false, "customers/d", "{plan: x}"), "customers/a={plan: free} customers/c={}", "customers/d"},
		{
			"and the second", change(false, "customers/e", "{plan: paid, hard: {api_calls: 15}}"), "customers/a={plan: free} customers/c={}",
			"customers/d customers/e",
		},
		{
			"a plan of which only one needs it", change(false, "plans/paid", paid),
			"customers/a={plan: free} customers/c={} customers/e={plan: paid, hard: {api_calls: 15}} plans/paid=" + paid, "customers/d",
		},
		{
			"a plan that its customer does not fit", change(false, "plans/paid", raw),
			"customers/a={plan: free} customers/c={} customers/e={plan: paid, hard: {api_calls: 15}} plans/paid=" + paid, "customers/d plans/paid",
		},
		{"a gap: all objects, without what was held back", change(true, "plans/free", free, "customers/z", "{}"), "customers/z={}", ""},
		{"a gap with the default plan missing keeps it", change(true, "customers/y", "{}"), "customers/y={}", "plans/free"},
	} {
		table.Apply(t.Context(), time.Unix(0, 0), row.change)
		if got := inForce(table); got != row.inForce {
			t.Fatalf("%s: in force is\n%s\nwant\n%s\nheld: %+v", row.name, got, row.inForce, table.Held())
		}
		if got := heldBack(table); got != row.holds {
			t.Fatalf("%s: held back is %q, want %q: %+v", row.name, got, row.holds, table.Held())
		}
	}
}

// TestManyFaults: faulty objects never block the others, whatever their number.
func TestManyFaults(t *testing.T) {
	table := newTable(t, accept)
	pairs := []string{"plans/free", free}
	for n := range 500 {
		pairs = append(pairs, fmt.Sprint("customers/bad", n), "{plan: fre}", fmt.Sprint("customers/good", n), "{}",
			fmt.Sprint("rules/bad", n), "{key: [ip], limits: [1/1x]}", fmt.Sprint("rules/good", n), "{match: {path: /"+fmt.Sprint(n)+"}, key: [ip], limits: [1/1s]}")
	}
	table.Apply(t.Context(), time.Unix(0, 0), change(true, pairs...))
	in := table.Objects()
	if c, r, held := in.Len(source.Customer), in.Len(source.Rule), len(table.Held()); c != 500 || r != 500 || held != 1000 {
		t.Errorf("in force are %d customers and %d rules, and %d changes are held back: want 500, 500 and 1000", c, r, held)
	}
}

// TestRefusedByTheGuard: objects that the guard refuses are held back with its reason.
func TestRefusedByTheGuard(t *testing.T) {
	refused := errors.New("no space")
	puts := 0
	table := newTable(t, func(o *config.Objects) error {
		if puts++; o.Len(source.Customer) > 1 {
			return refused
		}
		return nil
	})
	table.Apply(t.Context(), time.Unix(0, 0), change(true, "plans/free", free, "customers/a", "{}"))
	table.Apply(t.Context(), time.Unix(0, 0), change(false, "customers/b", "{}"))
	if got := inForce(table); got != "customers/a={}" {
		t.Errorf("in force is %q", got)
	}
	if held := table.Held(); len(held) != 1 || held[0].Reason != "no space" {
		t.Errorf("held back is %+v", held)
	}
	table.Apply(t.Context(), time.Unix(0, 0), change(false, "customers/a", "-"))
	if got := inForce(table); got != "customers/b={}" {
		t.Errorf("after a customer was deleted, in force is %q: %+v", got, table.Held())
	}
}

// TestTogether: changes that come together take effect in one step, and a faulty one is held back alone.
func TestTogether(t *testing.T) {
	puts := 0
	table := newTable(t, func(*config.Objects) error { puts++; return nil })
	table.Apply(t.Context(), time.Unix(0, 0), change(true, "plans/free", free))
	puts = 0
	table.Apply(t.Context(), time.Unix(0, 0), change(false, "customers/a", "{}"), change(false, "customers/b", "{}"), change(false, "customers/a", "{note: x}"))
	if got := inForce(table); got != "customers/a={note: x} customers/b={}" || puts != 1 {
		t.Errorf("in force is %q after %d steps, want one", got, puts)
	}
	table.Apply(t.Context(), time.Unix(0, 0), change(false))
	if puts != 1 {
		t.Errorf("a change without objects took %d steps, want none", puts-1)
	}
	begun := table.Apply(t.Context(), time.Unix(0, 0), change(false, "customers/a", "-"), change(false, "customers/c", "{plan: no}"))
	if got := inForce(table); got != "customers/b={}" || len(begun) != 1 {
		t.Errorf("in force is %q, and held back are %+v", got, begun)
	}
}

// TestValidTogetherOnly: a plan and its customer count a quota by one algorithm. Another one comes first for the plan, and then for the
// customer. Both take effect with the second change, whatever else is held back.
func TestValidTogetherOnly(t *testing.T) {
	text := func(algorithm string) string {
		return "{quotas: {api_calls: [{limit: 9/1h, algorithm: " + algorithm + "}]}}"
	}
	own := func(algorithm string) string {
		return "{plan: p, limits: {api_calls: [{limit: 5/1h, algorithm: " + algorithm + "}]}}"
	}
	for name, others := range map[string][]string{
		"alone":                     nil,
		"beside faulty customers":   {"customers/bad", "{plan: no}", "customers/worse", "{plan: no}"},
		"beside a faulty plan":      {"plans/bad", "[", "plans/worse", "{quotas: {api_calls: [{limit: 9/1x}]}}"},
		"beside a misspelled field": {"customers/bad", "{plam: free}", "rules/bad", "{key: [ip], limits: [5/1x]}"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, accept)
			table.Apply(t.Context(), time.Unix(0, 0), change(true, "plans/free", free, "plans/p", text("fixed_window"), "customers/c", own("fixed_window")))
			for i := 0; i < len(others); i += 2 {
				table.Apply(t.Context(), time.Unix(0, 0), change(false, others[i], others[i+1]))
			}
			table.Apply(t.Context(), time.Unix(0, 0), change(false, "plans/p", text("sliding_window")))
			if got := len(table.Held()); got != 1+len(others)/2 {
				t.Fatalf("%d changes are held back, want the plan and the others: %+v", got, table.Held())
			}
			table.Apply(t.Context(), time.Unix(0, 0), change(false, "customers/c", own("sliding_window")))
			if got, want := inForce(table), "customers/c="+own("sliding_window")+" plans/p="+text("sliding_window"); got != want {
				t.Errorf("in force is\n%s\nwant\n%s\nheld: %+v", got, want, table.Held())
			}
			if got := len(table.Held()); got != len(others)/2 {
				t.Errorf("%d changes are held back, want %d", got, len(others)/2)
			}
		})
	}
}

// TestReloadOfTheFile: another file is combined with what is in force, or refused.
func TestReloadOfTheFile(t *testing.T) {
	table := newTable(t, accept)
	table.Apply(t.Context(), time.Unix(0, 0), change(true, "plans/free", free, "customers/a", "{}"))
	next, err := table.Reload(fromFile(t, strings.Replace(file, "rules:\n", "rules:\n  - {name: all, key: [ip], limits: [9/1s]}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if rules := next.Config().Rules; len(rules) != 2 || next.Quotas().Len() != 1 {
		t.Errorf("got %d rules and %d customers, want 2 and 1", len(rules), next.Quotas().Len())
	}
	if _, err := table.Reload(fromFile(t, strings.Replace(file, ": free", ": gold", 1))); err == nil || !strings.Contains(err.Error(), `plan "gold" does not exist`) {
		t.Errorf("a file that names a plan that does not exist: got %v", err)
	}
}
