package sourcetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

func customer(name string) source.Key { return source.Key{Kind: source.Customer, Name: name} }

// write writes an object and fails the test after an error. It gives the new revision.
func write(t *testing.T, s source.Writer, key source.Key, text string, revision int64) int64 {
	t.Helper()
	record := source.Record{Action: "set", After: text}
	to, err := s.Write(t.Context(), source.Write{Key: key, Text: text, Revision: revision, Record: record})
	if err != nil || to <= revision {
		t.Fatalf("%s: revision %d after %d, %v", key, to, revision, err)
	}
	return to
}

// remove deletes an object.
func remove(t *testing.T, s source.Writer, key source.Key, revision int64) {
	t.Helper()
	to, err := s.Write(t.Context(), source.Write{Key: key, Delete: true, Revision: revision, Record: source.Record{Action: "delete"}})
	if err != nil || to != 0 {
		t.Fatalf("%s is not deleted: revision %d, %v", key, to, err)
	}
}

// firstRead: an empty place gives one change with no objects. Another reader gets all objects at once, of all kinds.
func firstRead(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	m, stop := Follow(t, s, nil)
	m.Until("there is an empty change", func() bool { return len(m.Changes) == 1 && !m.At.IsZero() })
	stop()
	want := map[source.Key]string{}
	var edits []Edit
	for i := range 1500 { // More than one page.
		key := source.Key{Kind: source.Kinds()[i%3], Name: fmt.Sprintf("o%d", i/3)}
		want[key] = fmt.Sprintf("plan: %d", i)
		edits = append(edits, Edit{key, want[key]})
	}
	for len(edits) > 0 {
		n := min(100, len(edits))
		p.Commit(t, edits[:n]...)
		edits = edits[n:]
	}
	m, stop = Follow(t, s, nil)
	m.Has(want)
	m.Until("it is one change", func() bool { return len(m.Changes) == 1 && m.Changes[0].All })
	stop()
}

// changes: each write, and each change without a writer, reaches the receiver.
func changes(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	m, _ := Follow(t, s, nil)
	acme, plan := customer("acme"), source.Key{Kind: source.Plan, Name: "acme"}
	first := write(t, s, acme, "plan: free", 0)
	m.Has(map[source.Key]string{acme: "plan: free"})
	second := write(t, s, acme, "plan: pro", first)
	write(t, s, plan, "{}", 0)
	m.Has(map[source.Key]string{acme: "plan: pro", plan: "{}"})
	if o, err := s.Get(t.Context(), acme); err != nil || o != (source.Object{Key: acme, Text: "plan: pro", Revision: second}) {
		t.Errorf("%+v, %v", o, err)
	}
	p.Commit(t, Edit{acme, "plan: team"}, Edit{plan, ""})
	m.Has(map[source.Key]string{acme: "plan: team"})
	o, err := s.Get(t.Context(), acme)
	if err != nil || o.Revision <= second {
		t.Errorf("%+v, %v: want a revision above %d", o, err, second)
	}
	remove(t, s, acme, o.Revision)
	m.Has(map[source.Key]string{})
	if _, err := s.Get(t.Context(), acme); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("a deleted object: %v", err)
	}
	again := write(t, s, acme, "plan: free", 0)
	if again <= o.Revision {
		t.Errorf("a new object has revision %d, after one that was deleted at %d", again, o.Revision)
	}
	m.SameAs(t, p.Open(t, Options{}))
	m.Until("only the first change has all objects", func() bool {
		for _, c := range m.Changes[1:] {
			if c.All {
				return false
			}
		}
		return true
	})
}

// transactions: the receiver never sees a part of a transaction, although several of them run at once.
func transactions(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	const groups, rounds = 4, 8
	key := func(group, n int) source.Key { return customer(fmt.Sprintf("%d-%d", group, n)) }
	m, _ := Follow(t, s, func(_ source.Change, all map[source.Key]source.Object) {
		for group := range groups {
			if a, b, d := all[key(group, 0)].Text, all[key(group, 1)].Text, all[key(group, 2)].Text; a != b || b != d {
				t.Errorf("group %d has %q, %q and %q", group, a, b, d)
			}
		}
	})
	var work sync.WaitGroup
	for group := range groups {
		work.Go(func() {
			for round := range rounds {
				text := strings.Repeat("x", round) + "y"
				if round%4 == 3 {
					text = ""
				}
				p.Commit(t, Edit{key(group, 0), text}, Edit{key(group, 1), text}, Edit{key(group, 2), text})
			}
		})
	}
	work.Wait()
	m.SameAs(t, p.Open(t, Options{}))
}

// missedTransactions: transactions commit while the connection is lost. Afterwards, each of them is one change of its own, so that the
// receiver takes or refuses it as a whole, and takes one although another one is faulty.
func missedTransactions(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	m, _ := Follow(t, p.Through(t, link, Options{}), nil)
	want := map[source.Key]string{customer("gone-3"): "x", customer("stays"): "x"}
	p.Commit(t, Edit{customer("gone-3"), "x"}, Edit{customer("stays"), "x"})
	m.Has(want)
	link.Cut()
	m.Until("it fails", func() bool { return len(m.Failures) > 0 })
	const transactions = 4
	for i := range transactions {
		a, b := customer(fmt.Sprint("a-", i)), customer(fmt.Sprint("b-", i))
		p.Commit(t, Edit{a, "x"}, Edit{b, "x"}, Edit{customer(fmt.Sprint("gone-", i)), ""})
		want[a], want[b] = "x", "x"
	}
	delete(want, customer("gone-3"))
	link.Heal()
	m.Has(want)
	m.SameAs(t, p.Open(t, Options{}))
	m.mu.Lock()
	defer m.mu.Unlock()
	missed := m.Changes[len(m.Changes)-transactions:]
	for i := range missed {
		c := &missed[i]
		if c.All || len(c.Objects) != 2 || c.Objects[0].Name[1:] != c.Objects[1].Name[1:] {
			t.Errorf("change %d of those that were missed: all %v, objects %v", i, c.All, c.Objects)
		}
	}
}

// conflicts: a write for an old revision changes nothing, has no record, and says what the object has now.
func conflicts(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{})
	acme, other := customer("acme"), customer("other")
	first := write(t, s, acme, "one", 0)
	second := write(t, s, acme, "two", first)
	for _, w := range []struct {
		write source.Write
		now   int64
		says  string
	}{
		{source.Write{Key: acme, Text: "x"}, second, "exists already"},
		{source.Write{Key: acme, Text: "x", Revision: first}, second, "read it again"},
		{source.Write{Key: acme, Delete: true, Revision: first}, second, "read it again"},
		{source.Write{Key: other, Text: "x", Revision: first}, 0, "was deleted"},
		{source.Write{Key: other, Delete: true, Revision: first}, 0, "was deleted"},
	} {
		_, err := s.Write(t.Context(), w.write)
		want := source.ConflictError{Key: w.write.Key, Revision: w.now, Expected: w.write.Revision}
		if conflict, ok := errors.AsType[*source.ConflictError](err); !ok || *conflict != want ||
			!strings.Contains(err.Error(), w.says) {
			t.Errorf("%+v: %v", w.write, err)
		}
	}
	if o, err := s.Get(t.Context(), acme); err != nil || o.Text != "two" {
		t.Errorf("%+v, %v", o, err)
	}
	if all, err := Records(t, s, "", 10); err != nil || len(all) != 2 {
		t.Errorf("records %+v, %v: want those of two changes", all, err)
	}
}

// manyWriters: writers count in few objects at once. Each conflict is told, so that the sum is exact, and each change
// has one record.
func manyWriters(t *testing.T, p Place) {
	t.Helper()
	const writers, each, objects = 4, 6, 2
	s := p.Open(t, Options{})
	m, _ := Follow(t, s, nil)
	var work sync.WaitGroup
	for writer := range writers {
		work.Go(func() {
			for i := range each {
				increment(t, s, customer(fmt.Sprint((writer+i)%objects)))
			}
		})
	}
	work.Wait()
	m.SameAs(t, p.Open(t, Options{}))
	sum := 0
	for n := range objects {
		o, err := s.Get(t.Context(), customer(fmt.Sprint(n)))
		if err != nil {
			t.Fatal(err)
		}
		sum += len(o.Text)
	}
	if sum != writers*each {
		t.Errorf("the sum is %d: want %d", sum, writers*each)
	}
	if all, err := Records(t, s, "", 1000); err != nil || len(all) != writers*each {
		t.Errorf("%d records, %v: want %d", len(all), err, writers*each)
	}
}

// increment appends a character to an object.
func increment(t *testing.T, s source.Writer, key source.Key) {
	t.Helper()
	for {
		o, err := s.Get(t.Context(), key)
		if err != nil && !errors.Is(err, source.ErrNotFound) {
			t.Error(err)
			return
		}
		_, err = s.Write(t.Context(), source.Write{Key: key, Text: o.Text + "x", Revision: o.Revision})
		if _, ok := errors.AsType[*source.ConflictError](err); !ok {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// randomChanges: writers and operators change and delete few objects at once, and the receiver's connection is reset
// among them. In the end the receiver has the same as a fresh read.
func randomChanges(t *testing.T, p Place) {
	t.Helper()
	link := p.Link(t)
	m, _ := Follow(t, p.Through(t, link, Options{}), nil)
	s := p.Open(t, Options{})
	var work sync.WaitGroup
	for writer := range 3 {
		random := rand.New(rand.NewPCG(7, uint64(writer)))
		work.Go(func() {
			for range 10 {
				anyChange(t, s, p, random)
			}
		})
	}
	for range 3 {
		m.UntilNow()
		link.Reset()
	}
	work.Wait()
	m.SameAs(t, p.Open(t, Options{}))
}

// anyChange makes one change by a writer, which may lose against another one, or one without a writer.
func anyChange(t *testing.T, s source.Writer, p Place, random *rand.Rand) {
	t.Helper()
	key := source.Key{Kind: source.Kinds()[random.IntN(3)], Name: fmt.Sprint(random.IntN(3))}
	text := fmt.Sprint(random.Uint32())
	if random.IntN(3) == 0 {
		other := source.Key{Kind: key.Kind, Name: "other"}
		p.Commit(t, Edit{key, text[:random.IntN(2)]}, Edit{other, text})
		return
	}
	o, err := s.Get(t.Context(), key)
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		t.Error(err)
	}
	w := source.Write{Key: key, Text: text, Revision: o.Revision, Delete: o.Revision > 0 && random.IntN(3) == 0}
	_, err = s.Write(t.Context(), w)
	if _, lost := errors.AsType[*source.ConflictError](err); err != nil && !lost {
		t.Error(err)
	}
}

// tooMany: an object above the bound is an error, and the former objects stay in force until there are fewer.
func tooMany(t *testing.T, p Place) {
	t.Helper()
	s := p.Open(t, Options{MaxObjects: 3})
	m, _ := Follow(t, s, nil)
	want := map[source.Key]string{}
	for _, name := range []string{"a", "b", "c"} {
		write(t, s, customer(name), "x", 0)
		want[customer(name)] = "x"
	}
	m.Has(want)
	over := write(t, s, customer("d"), "x", 0)
	m.Until("it says so", func() bool { return failure(m, "objects") })
	m.Until("a fresh read says so too", func() bool { return len(m.Failures) >= 3 })
	m.Has(want)
	remove(t, s, customer("d"), over)
	p.Commit(t, Edit{customer("a"), "y"})
	want = maps.Clone(want)
	want[customer("a")] = "y"
	m.Has(want)
}

// tooLarge: texts above the bound of all texts are an error, and the former objects stay in force until there are fewer. Former versions
// and deleted objects do not count.
func tooLarge(t *testing.T, p Place) {
	t.Helper()
	const most = 1000
	text := strings.Repeat("x", 300)
	m, _ := Follow(t, p.Open(t, Options{MaxBytes: most}), nil)
	s := p.Open(t, Options{})
	want := map[source.Key]string{}
	for _, name := range []string{"a", "b", "c"} {
		var revision int64
		for range 3 {
			revision = write(t, s, customer(name), text, revision)
		}
		want[customer(name)] = text
	}
	remove(t, s, customer("gone"), write(t, s, customer("gone"), text[:99], 0))
	m.UntilNow() // Without it, the wanted objects may be those before "gone", which then stays.
	m.Has(want)
	m.Until("nothing is said of the bound", func() bool { return !failure(m, "bytes") })
	over := write(t, s, customer("d"), text, 0)
	m.Until("it says so", func() bool { return failure(m, "bytes") })
	fresh, stop := Follow(t, p.Open(t, Options{MaxBytes: most}), nil)
	fresh.Until("a fresh read says so too", func() bool { return failure(fresh, "bytes") && len(fresh.Changes) == 0 })
	stop()
	m.Has(want)
	remove(t, s, customer("d"), over)
	m.SameAs(t, s)
	m.Has(want)
}

// failure reports whether the last failure has a text.
func failure(m *Mirror, text string) bool {
	return len(m.Failures) > 0 && strings.Contains(m.Failures[len(m.Failures)-1].Error(), text)
}
