package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// manyCustomers are pairs for change, with the plan free.
func manyCustomers(n int, text string) []string {
	pairs := []string{"plans/free", free}
	for i := range n {
		pairs = append(pairs, fmt.Sprint("customers/c", i), text)
	}
	return pairs
}

// TestFaultsWithoutNames: faults that name no object, or the wrong one, hold back only the objects that cause them.
func TestFaultsWithoutNames(t *testing.T) {
	bad := []string{"customers/c7", "customers/c333", "customers/c999"}
	table := newTable(t, func(o *config.Objects) error {
		for _, name := range bad {
			if _, has := o.Get(key(name)); has {
				return errors.New("the guard has no space")
			}
		}
		return nil
	})
	table.Apply(t.Context(), time.Unix(0, 0), change(true, manyCustomers(1000, "{}")...))
	if got, want := heldBack(table), "customers/c333 customers/c7 customers/c999"; got != want {
		t.Errorf("held back are %q, want %q", got, want)
	}
	if n := table.Objects().Len(source.Customer); n != 997 || table.Due() {
		t.Errorf("%d customers are in force, want 997, and more attempts are due: %v", n, table.Due())
	}
}

// TestWrongNames: a default plan that the source does not have yet, and limits that are too many together, hold back no other objects.
func TestWrongNames(t *testing.T) {
	table := newTable(t, accept)
	table.Apply(t.Context(), time.Unix(0, 0), change(true, "plans/free", free, "customers/a", "{}"))
	table.Apply(t.Context(), time.Unix(0, 0), change(false, "plans/free", "-"), change(false, "customers/b", "{}"),
		change(false, "rules/r", "{key: [ip], limits: [5/1s]}"))
	if got, want := inForce(table), "customers/a={} customers/b={} rules/r={key: [ip], limits: [5/1s]}"; got != want {
		t.Errorf("in force is %q, want %q", got, want)
	}
	if got := heldBack(table); got != "plans/free" {
		t.Errorf("held back is %q", got)
	}
}

// TestTransactionAfterAGap: a transaction that is held back stays whole when the source gives all objects again.
func TestTransactionAfterAGap(t *testing.T) {
	table := newTable(t, accept)
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	table.Apply(t.Context(), at(0), change(true, "plans/free", free, "customers/a", "{}", "customers/b", "{}"))
	table.Apply(t.Context(), at(1), change(false, "customers/a", "{plan: gold}", "customers/b", "-", "customers/c", "{}"))
	all := change(true, "plans/free", free, "customers/a", "{plan: gold}", "customers/c", "{}")
	if begun := table.Apply(t.Context(), at(2), all); len(begun) != 0 {
		t.Errorf("what was held back before is reported again: %+v", begun)
	}
	if got := inForce(table); got != "customers/a={} customers/b={}" {
		t.Errorf("after a gap, in force is %q: a transaction took effect in part", got)
	}
	if held := table.Held(); len(held) != 1 || len(held[0].Objects) != 3 || !held[0].Since.Equal(at(1)) {
		t.Errorf("held back is %+v, want one transaction of three objects", held)
	}
	all.Objects[2].Text = "{note: x}"
	table.Apply(t.Context(), at(3), all)
	if got := inForce(table); got != "customers/a={} customers/c={note: x}" {
		t.Errorf("after another change of one object, in force is %q", got)
	}
}

// TestManyHeldAfterAReload: a file that repairs many changes lets all of them take effect.
func TestManyHeldAfterAReload(t *testing.T) {
	table := newTable(t, accept)
	table.Apply(t.Context(), time.Unix(0, 0), change(true, manyCustomers(maxTogether+50, "{plan: gold}")...))
	if n := len(table.Held()); n != maxTogether+50 {
		t.Fatalf("%d changes are held back", n)
	}
	next, err := table.Reload(fromFile(t, file+"plans: {gold: "+free+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	table.Reloaded(next)
	table.Apply(t.Context(), time.Unix(0, 0))
	if held, n := len(table.Held()), table.Objects().Len(source.Customer); held != 0 || n != maxTogether+50 {
		t.Errorf("%d changes are held back, and %d customers are in force", held, n)
	}
}

// TestPieces: many changes that the guard refuses are tried in pieces, and at the end each one has its reason.
func TestPieces(t *testing.T) {
	const n = 150
	table := newTable(t, accept)
	table.Apply(t.Context(), time.Unix(0, 0), change(true, manyCustomers(n, "{plan: gold}")...))
	pieces := 1
	for ; table.Due() && pieces < n; pieces++ {
		table.Apply(t.Context(), time.Unix(0, 0))
	}
	if pieces < 2 || table.Due() {
		t.Errorf("it took %d pieces, and more are due: %v", pieces, table.Due())
	}
	for _, h := range table.Held() {
		if len(h.Faults) != 1 || !strings.Contains(h.Faults[0].Problem, `"gold" does not exist`) {
			t.Fatalf("held back is %+v", h)
		}
	}
}

// TestInterrupted: a stop ends the attempts. Changes that were not tried stay held back, and a later call tries them.
func TestInterrupted(t *testing.T) {
	table := newTable(t, accept)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table.Apply(ctx, time.Unix(0, 0), change(true, "plans/free", free, "customers/a", "{}"))
	if table.Objects().Known() || len(table.Held()) != 2 || !table.Due() || !strings.Contains(table.Held()[0].Reason, "not tried yet") {
		t.Errorf("known %v, held back %+v", table.Objects().Known(), table.Held())
	}
	table.Apply(t.Context(), time.Unix(0, 0))
	if got := inForce(table); got != "customers/a={}" || table.Due() {
		t.Errorf("in force is %q", got)
	}
}
