package lease

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/internal/lease/state"
)

// TestMarksBeforeDeletions: a new mark is in the next write, also behind the deletions of many resources.
func TestMarksBeforeDeletions(t *testing.T) {
	m := newMarks(nil, nil)
	m.term = 1
	for i := range 1000 {
		m.stored[fmt.Sprint("gone/", i)] = struct{}{}
		m.put(1, []state.Mark{{Resource: fmt.Sprint("gone/", i), Amount: state.NoMark}})
	}
	m.put(1, []state.Mark{{Resource: "db", Amount: 5}, {Resource: "zero", Amount: 0}})
	_, batch := m.take()
	if _, zero := batch["zero"]; batch["db"] != 5 || !zero || len(batch) != election.MaxWrite {
		t.Errorf("the first write has %d marks, db %d and zero: %v", len(batch), batch["db"], zero)
	}
	writes := 1
	for _, batch = m.take(); len(batch) > 0; _, batch = m.take() {
		writes++
	}
	if writes != 11 {
		t.Errorf("%d writes for 1,002 marks, want 11", writes)
	}
}

// TestMarksWithoutAnAnswer: marks of a failed write wait again, but not in place of newer ones, and not in another term.
func TestMarksWithoutAnAnswer(t *testing.T) {
	m := newMarks(nil, nil)
	m.term = 1
	m.put(1, []state.Mark{{Resource: "a", Amount: 1}, {Resource: "b", Amount: 1}})
	m.put(2, []state.Mark{{Resource: "other term", Amount: 1}})
	term, batch := m.take()
	if fmt.Sprint(term, batch) != "1 map[a:1 b:1]" {
		t.Errorf("took %v of term %d", batch, term)
	}
	m.put(1, []state.Mark{{Resource: "b", Amount: state.NoMark}})
	m.back(1, batch)
	if _, batch = m.take(); fmt.Sprint(batch) != "map[a:1 b:-1]" {
		t.Errorf("took %v after a failed write", batch)
	}
	m.term = 2
	if m.back(1, batch); len(m.waiting) != 0 {
		t.Errorf("%v of another term waits", m.waiting)
	}
}

// TestMarksAreBounded: a client claims and releases resources with ever new names, faster than their marks are written. Neither the
// memory of the master nor etcd grows with the number of names, and the marks of others are written.
func TestMarksAreBounded(t *testing.T) {
	m := newMarks(nil, nil)
	m.term = 1
	most := 0
	for i := range 200 {
		for j := range 1000 {
			m.put(1, []state.Mark{{Resource: fmt.Sprint(i, "/", j), Amount: 1}})
		}
		term, batch := m.take()
		for j := range 1000 {
			m.put(1, []state.Mark{{Resource: fmt.Sprint(i, "/", j), Amount: state.NoMark}})
		}
		m.done(term, batch)
		most = max(most, len(m.waiting)+len(m.stored))
	}
	if most > 200*2*election.MaxWrite {
		t.Errorf("%d marks for 200,000 names, of which %d were written", most, 200*election.MaxWrite)
	}
	for i := range maxStored {
		m.stored[fmt.Sprint("stored ", i)] = struct{}{}
	}
	clear(m.waiting)
	for i := range 200 {
		m.put(1, []state.Mark{{Resource: fmt.Sprint("stored ", i), Amount: state.NoMark}})
	}
	m.put(1, []state.Mark{{Resource: "new", Amount: 1}, {Resource: "stored 300", Amount: 1}})
	_, batch := m.take()
	if _, early := batch["new"]; early || batch["stored 300"] != 1 || len(batch) != election.MaxWrite {
		t.Errorf("a full store: %v", batch)
	}
	clear(m.stored)
	if _, batch = m.take(); batch["new"] != 1 {
		t.Errorf("a store with room: %v", batch)
	}
}
