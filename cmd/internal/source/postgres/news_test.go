package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// newsOf gives news of objects. A text like "a: 1 2" is the object a, which the transactions 1 and 2 have changed.
func newsOf(texts ...string) *news {
	n := &news{numbers: map[string]int{}}
	for _, text := range texts {
		name, transactions, _ := strings.Cut(text, ":")
		key := source.Key{Kind: source.Customer, Name: strings.TrimPrefix(name, "-")}
		n.add(strings.Fields(transactions), newsRow{object: source.Object{Key: key}, deleted: name != key.Name})
	}
	return n
}

// shown gives the names of the objects of each change. Deleted ones have a minus.
func shown(changes []source.Change) string {
	var all []string
	for _, c := range changes {
		var names []string
		for _, o := range c.Objects {
			names = append(names, o.Name)
		}
		for _, k := range c.Deleted {
			names = append(names, "-"+k.Name)
		}
		slices.Sort(names)
		all = append(all, fmt.Sprintf("%s @%d", strings.Join(names, "+"), c.Position))
	}
	return strings.Join(all, ", ")
}

// TestNews is the story of changes that are read together: unrelated transactions are changes of their own.
func TestNews(t *testing.T) {
	for _, row := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"nothing but rows that are ignored", nil, " @9"},
		{"one transaction", []string{"a: 7", "-b: 7"}, "-b+a @9"},
		{"two transactions", []string{"a: 7", "b: 8"}, "a @5, b @9"},
		{"two transactions whose rows alternate", []string{"a: 7", "b: 8", "c: 7", "d: 8"}, "a+c @5, b+d @9"},
		{"two transactions with one object", []string{"a: 7", "b: 8 7", "c: 8"}, "a+b+c @9"},
		{"and with another one between", []string{"a: 7", "x: 5", "b: 8 7", "c: 8"}, "a+b+c @5, x @9"},
		{"a chain", []string{"a: 1", "b: 2 1", "c: 3", "d: 4 3", "e: 2 4"}, "a+b+c+d+e @9"},
	} {
		if got := shown(newsOf(row.texts...).changes(position{rows: 5}, position{rows: 9})); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// TestRandomNews compares the changes with a slow twin, which joins sets until none has a transaction of another one.
func TestRandomNews(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 18))
	for range 300 {
		var texts []string
		twin := map[string]string{} // The names of the objects of a change, by each of its transactions.
		for i := range random.IntN(12) {
			name, transactions := string(rune('a'+i)), fmt.Sprint(random.IntN(8))
			if random.IntN(3) == 0 {
				transactions += fmt.Sprint(" ", random.IntN(8))
			}
			texts = append(texts, name+": "+transactions)
			joined := " " + name
			for one := range strings.FieldsSeq(transactions) {
				if !strings.Contains(joined, twin[one]) {
					joined += twin[one]
				}
			}
			former := map[string]bool{}
			for one := range strings.FieldsSeq(transactions) {
				former[twin[one]] = true
				twin[one] = joined
			}
			for one, names := range twin {
				if former[names] {
					twin[one] = joined
				}
			}
		}
		want := map[string]bool{}
		for _, names := range twin {
			all := strings.Fields(names)
			slices.Sort(all)
			want[strings.Join(all, "+")] = true
		}
		got := map[string]bool{}
		for _, c := range newsOf(texts...).changes(position{}, position{}) {
			if name, _, _ := strings.Cut(shown([]source.Change{c}), " "); name != "" {
				got[name] = true
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: got %v, want %v", texts, got, want)
		}
	}
}
