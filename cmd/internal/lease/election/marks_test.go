package election_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

// TestMarks: the next master reads what the master has written. An earlier master writes nothing more.
func TestMarks(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	link := network.New(t, server.Addr)
	a := join(t, link.Addr, "a:1", calm)
	first := a.wins()
	if err := a.election.Write(t.Context(), first.Term, map[string]int64{"db/a": 5, "db/b": 0, "gone": 7}); err != nil {
		t.Fatal(err)
	}
	if err := a.election.Write(t.Context(), first.Term, map[string]int64{"gone": -1}); err != nil {
		t.Fatal(err)
	}
	server.CTL("put", election.DefaultPrefix+"eu/marks/foreign", "x")
	want := map[string]int64{"db/a": 5, "db/b": 0}
	if got, err := a.election.Marks(t.Context()); err != nil || !maps.Equal(got, want) {
		t.Errorf("marks %v, %v, want %v", got, err, want)
	}
	server.CTL("del", election.DefaultPrefix+"eu/master") // The master does not know yet.
	if err := a.election.Write(t.Context(), first.Term, map[string]int64{"db/a": 9}); err == nil {
		t.Error("a master without its key has written a mark")
	}
	second := a.await("the next term", func(s election.Status) bool { return s.Mine && s.Term > first.Term })
	if err := a.election.Write(t.Context(), first.Term, map[string]int64{"db/a": 9}); err == nil {
		t.Error("a mark of the first term was written in the second one")
	}
	if err := a.election.Write(t.Context(), second.Term, map[string]int64{"db/b": 1}); err != nil {
		t.Error(err)
	}
	want["db/b"] = 1
	if got, err := a.election.Marks(t.Context()); err != nil || !maps.Equal(got, want) {
		t.Errorf("marks %v, %v, want %v", got, err, want)
	}
}

// TestLateWrite: a write whose answer was lost has no effect after a later write.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	link := network.New(t, server.Addr)
	a := join(t, link.Addr, "a:1", quick)
	term := a.wins().Term
	for i := range 3 {
		link.NoAnswers()
		if err := a.election.Write(t.Context(), term, map[string]int64{"db/a": int64(i)}); err == nil {
			t.Error("a write without an answer is no error")
		}
		link.Heal()
		term = a.wins().Term
		for end := time.Now().Add(longest); ; {
			if err := a.election.Write(t.Context(), term, map[string]int64{"db/a": 100}); err == nil {
				break
			}
			if term = a.wins().Term; time.Now().After(end) {
				t.Fatal("no write succeeds")
			}
		}
		if got, err := a.election.Marks(t.Context()); err != nil || got["db/a"] != 100 {
			t.Errorf("marks %v, %v", got, err)
		}
	}
}

// TestManyMarks: all pages of marks are read, and more than 40,000 are an error.
func TestManyMarks(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	a := join(t, server.Addr, "a:1", 5*calm)
	term := a.wins().Term
	for page := range 401 {
		marks := map[string]int64{}
		for i := range election.MaxWrite {
			marks[fmt.Sprintf("%d/%d", page, i)] = int64(i)
		}
		if page == 400 {
			if got, err := a.election.Marks(t.Context()); err != nil || len(got) != 40_000 {
				t.Fatalf("%d marks, %v", len(got), err)
			}
		}
		if err := a.election.Write(t.Context(), term, marks); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.election.Marks(t.Context()); err == nil {
		t.Error("more than 40,000 marks are read")
	}
}
