package front

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// elected is a service of a group on a socket, with a clock that the test can move.
func elected(tb testing.TB) (server *running, skip func(time.Duration)) {
	tb.Helper()
	read, skip := movable()
	return serve(tb, Options{State: root(), Elected: true, Now: read}), skip
}

// movable is a clock that begins at 0, and that skip moves.
func movable() (read func() headgate.Instant, skip func(time.Duration)) {
	start, skipped := time.Now(), new(atomic.Int64)
	read = func() headgate.Instant { return headgate.Instant(time.Since(start)) + headgate.Instant(skipped.Load()) }
	return read, func(by time.Duration) { skipped.Store(int64(by)) }
}

// TestRoles: a server of a group gives leases only as the master, and only before its end.
func TestRoles(t *testing.T) {
	s, skip := elected(t)
	report := func(what string, code codes.Code, master string, leases int) {
		t.Helper()
		out, err := s.report(t, claims("h", uint64(time.Now().UnixNano()), 1000, "db/a"))
		if status.Code(err) != code || out.GetMaster() != master || len(out.GetLeases()) != leases {
			t.Errorf("%s: got %v, %v", what, out, err)
		}
	}
	report("before the first election", codes.Unavailable, "", 0)
	s.Follow("other:1")
	report("below another master", codes.OK, "other:1", 0)
	if err := s.Lead(7, headgate.Instant(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Lead(7, headgate.Instant(2*time.Hour), nil); err != nil { // A renewal keeps the leases.
		t.Fatal(err)
	}
	if mine, _ := s.Master(); !mine || !s.Stats().Master {
		t.Error("the master does not know that it is the master")
	}
	report("as the master", codes.OK, "", 1)
	out, err := s.report(t, claims("second", 1, 1000, "db/b"))
	if err != nil || len(out.GetLeases()) != 1 || out.GetLeases()[0].GetVersion().GetTerm() != 7 || s.Stats().Claims != 2 {
		t.Errorf("got %v, %v and %d claims, want a lease of term 7 and 2 claims", out, err, s.Stats().Claims)
	}
	skip(2 * time.Hour)
	report("after the end", codes.Unavailable, "", 0)
	if st := s.Stats(); st.Master || st.Claims != 0 || len(s.Resources()) != 0 {
		t.Errorf("after the end: %+v", st)
	}
}

// TestLateRenewal: a master whose process was paused renews its key after its own end, and before the key has expired. It has the
// same term, so it goes on with its leases: a holder that joins gets nothing of what is out.
func TestLateRenewal(t *testing.T) {
	s, skip := elected(t)
	lead := func(until time.Duration) {
		t.Helper()
		if err := s.Lead(7, headgate.Instant(until), nil); err != nil {
			t.Fatal(err)
		}
	}
	lead(5 * time.Second)
	if out, err := s.report(t, claims("first", 1, 100_000, "db/a")); err != nil || out.GetLeases()[0].GetAmount() != 100_000 {
		t.Fatalf("got %v, %v", out, err)
	}
	skip(6 * time.Second)
	if mine, _ := s.Master(); mine || s.Stats().Claims != 0 || !s.HasTerm(7) {
		t.Errorf("after the end: master %v with %d claims, and the term is known: %v", mine, s.Stats().Claims, s.HasTerm(7))
	}
	lead(time.Hour)
	out, err := s.report(t, claims("second", 1, 100_000, "db/a"))
	if err != nil || len(out.GetLeases()) != 1 || out.GetLeases()[0].GetAmount() != 0 {
		t.Errorf("got %v, %v: want nothing of 100000, which the first holder has", out, err)
	}
	if s.Follow(""); s.HasTerm(7) {
		t.Error("the term stays after the end of the tenure")
	}
}

// TestStreamsMove: streams are sent to another master, also those that are opened later. Without a master, they wait a second.
func TestStreamsMove(t *testing.T) {
	s, skip := elected(t)
	waiting := s.open(t)
	waiting.send(claims("h", 1, 1000, "db/a"))
	until(t, "the report has arrived", func() bool { return s.Stats().Reports == 1 })
	s.Follow("other:1")
	for what, c := range map[string]*client{"a waiting stream": waiting, "a new stream": s.open(t)} {
		if m := c.receive(); m.GetMaster() != "other:1" || len(m.GetLeases()) != 0 {
			t.Errorf("%s: got %v", what, m)
		}
		if err := c.stream.RecvMsg(&leasev1.ReportResponse{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s ends with %v", what, err)
		}
	}
	s.Follow("")
	stranded := s.open(t)
	skip(electionGrace + time.Millisecond)
	stranded.send(claims("h", 2, 1000, "db/a"))
	if err := stranded.stream.RecvMsg(&leasev1.ReportResponse{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream without a master ends with %v", err)
	}
}

// TestUplinkOfAGroup: a server below a group finds the master. An uplink can be closed and started again, as a server does that
// loses an election and wins a later one.
func TestUplinkOfAGroup(t *testing.T) {
	follower, _ := elected(t)
	master, _ := elected(t)
	follower.Follow(master.at)
	if err := master.Lead(1, headgate.Instant(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	bottom, u := leaf(t, nil, follower.at, master.at)
	for range 2 {
		until(t, "the stream to the master", func() bool { return u.Parent() == master.at })
		u.Close()
		if at := u.Parent(); at != "" {
			t.Errorf("a closed uplink has a stream to %s", at)
		}
		u.Start(bottom.Service)
	}
}

// TestMarksOfTheService: the first lease of a resource waits until its mark is stored. Marks of other terms have no effect.
func TestMarksOfTheService(t *testing.T) {
	sent := make(chan state.Mark, 10)
	start, skipped := time.Now(), new(atomic.Int64)
	now := func() headgate.Instant { return headgate.Instant(time.Since(start)) + headgate.Instant(skipped.Load()) }
	s := serve(t, Options{State: root(), Elected: true, Now: now, Marks: func(term uint64, marks []state.Mark) {
		for _, mark := range marks {
			if term == 3 {
				sent <- mark
			}
		}
	}})
	if err := s.Lead(3, headgate.Instant(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	c := s.open(t)
	c.send(claims("h", 1, 1000, "db/a"))
	mark := <-sent
	if mark != (state.Mark{Resource: "db/a", Amount: 1100}) {
		t.Errorf("the mark %+v", mark)
	}
	s.Stored(2, []state.Mark{mark})
	if usage := s.Resources()[0].Usage; usage.Ledger != 0 || usage.Mark != 1100 {
		t.Errorf("before the mark is stored: %+v", usage)
	}
	s.Stored(3, []state.Mark{mark})
	if m := c.receive(); len(m.GetLeases()) != 1 || m.GetLeases()[0].GetAmount() != 1000 {
		t.Errorf("got %v", m)
	}
}

// TestBeforeALateRenewal: between the end of a master and its late renewal, marks are stored and the capacity changes. Both have an
// effect when the master goes on.
func TestBeforeALateRenewal(t *testing.T) {
	sent := make(chan state.Mark, 10)
	now, skip := movable()
	s := serve(t, Options{State: root(), Elected: true, Now: now, Marks: func(_ uint64, marks []state.Mark) {
		for _, mark := range marks {
			sent <- mark
		}
	}})
	if err := s.Lead(3, headgate.Instant(20*time.Second), nil); err != nil {
		t.Fatal(err)
	}
	c := s.open(t)
	c.send(claims("h", 1, 50_000, "db/a"))
	mark := <-sent
	skip(20 * time.Second)
	s.Stored(3, []state.Mark{mark})
	lower := root()
	lower.Resources[0].Capacity = 30_000
	if err := s.Configure(lower.Resources, lower.Callers); err != nil {
		t.Fatal(err)
	}
	if err := s.Lead(3, headgate.Instant(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	if m := c.receive(); len(m.GetLeases()) != 1 || m.GetLeases()[0].GetAmount() != 30_000 {
		t.Errorf("got %v, want the lowered capacity of 30000", m)
	}
}
