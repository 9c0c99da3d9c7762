package holder

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestNeverAbove has random demands, broken connections and restarted servers. Messages are lost,
// repeated, and arrive after those of a later connection, or at the next server. The sum of what the holders may use is
// never above the capacity.
func TestNeverAbove(t *testing.T) {
	seeds := uint64(250)
	if race.On {
		seeds = 20
	}
	for seed := range seeds {
		capacity := 1 + rand.New(rand.NewPCG(seed, 1)).Int64N(100_000)
		w := newWorld(t, seed, capacity)
		w.loss, w.repeat = 0.5, 0.2
		for range 1 + w.rand.IntN(12) {
			w.join(w.rand.Int64N(20_000), Pessimistic)
		}
		for range 4000 {
			w.run(w.now + headgate.Instant(w.rand.Int64N(int64(50*ms))))
			u := w.users[w.rand.IntN(len(w.users))]
			switch w.rand.IntN(60) {
			case 0:
				u.cut(headgate.Instant(w.rand.Int64N(int64(2 * sec))))
			case 1:
				u.want(w.rand.Int64N(20_000))
			case 2:
				u.h.Release(resource)
				if err := u.h.Claim(w.now, resource); err != nil {
					t.Fatal(err)
				}
				u.want(w.rand.Int64N(20_000))
			case 3:
				if w.rand.IntN(5) == 0 {
					w.start()
				}
			}
			if sum := w.sum(); sum > capacity {
				t.Fatalf("seed %d: %v: %d may be used of %d", seed, w.now.Sub(0), sum, capacity)
			}
		}
		w.loss, w.repeat = 0, 0
		w.run(w.now + 50*sec)
		var wants int64
		for _, u := range w.users {
			wants += u.h.by[resource].wants
		}
		if sum := w.sum(); sum < min(wants, capacity)*98/100 {
			t.Errorf("seed %d: %d may be used of %d, %d is wanted", seed, sum, capacity, wants)
		}
	}
}

// TestOnLoss stops the server. Each lease ends, and then the mode decides.
func TestOnLoss(t *testing.T) {
	for mode, want := range map[OnLoss]int64{Safe: 50_000, Pessimistic: 0, Optimistic: 80_000} {
		w := newWorld(t, 1, 100_000)
		u := w.join(80_000, mode)
		w.join(80_000, mode)
		w.run(6 * sec)
		if s := u.h.Status(w.now, resource); s.Amount != 50_000 || s.Lost || !s.Limited {
			t.Fatalf("%v: %+v, want half of the capacity", mode, s)
		}
		w.server = nil
		u.cut(headgate.Instant(time.Hour))
		w.run(16 * sec)
		if s := u.h.Status(w.now, resource); s.Amount != 50_000 || s.Lost {
			t.Errorf("%v: %+v before the end of the lease, want the lease", mode, s)
		}
		w.run(22 * sec)
		if s := u.h.Status(w.now, resource); s.Amount != want || !s.Lost {
			t.Errorf("%v: %+v after the end of the lease, want %d", mode, s, want)
		}
	}
}

// TestOptimisticStart has no server at all.
func TestOptimisticStart(t *testing.T) {
	h := New(Config{Name: "a", OnLoss: Optimistic, Rand: rand.New(rand.NewPCG(1, 1))})
	if err := h.Claim(0, resource); err != nil {
		t.Fatal(err)
	}
	h.Want(resource, 7)
	if got := h.Next(sec); got != 2*sec {
		t.Errorf("the next work is at %v, want at 2 s", got.Sub(0))
	}
	if got := h.Next(2 * sec); got != never {
		t.Errorf("after 2 s, the next work is at %v, want none", got.Sub(0))
	}
	if got := h.Amount(2*sec-1, resource); got != 0 {
		t.Errorf("%d before 2 s, want 0", got)
	}
	if got := h.Amount(2*sec, resource); got != 7 {
		t.Errorf("%d after 2 s, want what is wanted", got)
	}
}

// TestReports follows the reports of a holder whose server does not answer, then answers, then
// restarts.
func TestReports(t *testing.T) {
	h := New(Config{Name: "a", Rand: rand.New(rand.NewPCG(1, 1))})
	if err := h.Claim(0, resource); err != nil {
		t.Fatal(err)
	}
	var r Report
	if h.Report(0, &r) {
		t.Fatal("a report without a stream")
	}
	h.Connected(0)
	h.Want(resource, 1000)
	var times []headgate.Instant
	for now := headgate.Instant(0); now < 20*sec; now = h.Next(now) {
		if !h.Report(now, &r) || len(r.Claims) != 1 || r.Claims[0].Wants != 1000 || r.Seq != uint64(len(times)+1) {
			t.Fatalf("%v: %+v, want the claim with the next number", now.Sub(0), r)
		}
		times = append(times, now)
	}
	for i := 1; i < len(times); i++ {
		wait := times[i].Sub(times[i-1])
		if least := min(leastRetry<<(i-1), mostRetry); wait < least || wait > least*3/2 {
			t.Errorf("report %d follows after %v, want %v to %v", i+1, wait, least, least*3/2)
		}
	}
	if got := h.Silent(20 * sec); got != 20*time.Second {
		t.Errorf("silent for %v, want 20 s", got)
	}
	now := 20 * sec
	lease := state.Lease{
		Resource: resource, Seq: r.Seq, Version: state.Version{Term: 1, Number: 1}, Amount: 800, Length: 15 * time.Second, Refresh: 5 * time.Second,
	}
	h.Receive(now, []state.Lease{lease})
	if s := h.Status(now, resource); s.Amount != 800 || s.Limited || h.Silent(now) != 0 {
		t.Errorf("%+v after the answer, want 800", s)
	}
	if !h.Report(now, &r) || len(r.Claims) != 0 || len(r.Acks) != 1 || r.Acks[0].Holds != 800 {
		t.Errorf("%+v, want an acknowledgement at once", r)
	}
	if wait := h.Next(now).Sub(times[len(times)-1]); wait < 4500*time.Millisecond || wait > 5*time.Second {
		t.Errorf("the next report follows after %v, want a refresh a little before 5 s", wait)
	}
	h.Want(resource, 1100)
	if h.Report(now+ms, &r) {
		t.Errorf("%+v for a change of a tenth, want none", r)
	}
	h.Want(resource, 2000)
	if !h.Report(now+101*ms, &r) || r.Claims[0].Wants != 2000 {
		t.Errorf("%+v for a larger change, want a report at once", r)
	}
	h.Disconnected()
	h.Connected(now + 2*sec)
	if !h.Report(now+2*sec, &r) || r.Claims[0].Holds != 800 || r.Claims[0].Left <= 0 {
		t.Errorf("%+v on a new stream, want what the holder has", r)
	}
}

// TestShared has the claims of several resources, which share reports.
func TestShared(t *testing.T) {
	w := newWorld(t, 1, 1000)
	u := w.join(10, Safe)
	for i := range 9 {
		if err := u.h.Claim(w.now, fmt.Sprint("db", i)); err != nil {
			t.Fatal(err)
		}
		u.flush()
	}
	w.run(10 * sec)
	before := u.sent
	w.run(w.now + 50*sec)
	if n := u.sent - before; n > 13 {
		t.Errorf("%d reports in 50 s, want one each 5 s", n)
	}
}

// TestRefused has a claim without a pattern at the server.
func TestRefused(t *testing.T) {
	w := newWorld(t, 1, 1000)
	w.config.Resources[0].Match = "other"
	w.start()
	u := w.join(10, Safe)
	w.run(sec)
	s := u.h.Status(w.now, resource)
	if s.Refused == nil || s.Refused.Code != state.NotFound || s.Amount != 0 {
		t.Fatalf("%+v, want a refusal", s)
	}
	w.run(60 * sec)
	if u.sent < 4 || u.sent > 7 {
		t.Errorf("%d reports in a minute, want one each 10 to 15 s", u.sent)
	}
	long := state.Refusal{Seq: 1 << 60, Err: &state.Error{Resource: resource, Text: strings.Repeat("a", 1<<20)}}
	u.h.Refuse(w.now, &long)
	if s := u.h.Status(w.now, resource); len(s.Refused.Text) != MaxText {
		t.Errorf("a text of %d bytes is kept, want %d", len(s.Refused.Text), MaxText)
	}
}

// TestRelease gives the capacity to the other holder at once.
func TestRelease(t *testing.T) {
	w := newWorld(t, 1, 1000)
	a, b := w.join(1000, Safe), w.join(1000, Safe)
	w.run(sec)
	a.h.Release(resource)
	a.flush()
	w.run(sec + 200*ms)
	if got := b.h.Amount(w.now, resource); got != 1000 {
		t.Errorf("%d after the release, want all", got)
	}
	if a.h.Next(w.now) != never || a.h.Amount(w.now, resource) != 0 {
		t.Error("the released claim has work or an amount")
	}
}

// TestBounds has the bounds of a holder.
func TestBounds(t *testing.T) {
	h := New(Config{Name: "a", Rand: rand.New(rand.NewPCG(1, 1))})
	h.Connected(0)
	for i := range state.MaxClaims {
		if err := h.Claim(0, fmt.Sprint("db", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Claim(0, "more"); err == nil {
		t.Error("a holder takes more claims than a report may have")
	}
	if err := h.Claim(0, "db1"); !errors.Is(err, ErrClaimed) {
		t.Errorf("a second claim: %v", err)
	}
	if h.Claim(0, "") == nil || h.Claim(0, strings.Repeat("a", 257)) == nil {
		t.Error("a holder takes a wrong name")
	}
	var r Report
	h.Report(0, &r)
	for i := range state.MaxClaims {
		h.Release(fmt.Sprint("db", i))
		if err := h.Claim(0, fmt.Sprint("db", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		h.Report(0, &r)
		seen := map[string]bool{}
		for _, c := range r.Claims {
			if seen[c.Resource] {
				t.Fatalf("%s is in a report twice", c.Resource)
			}
			seen[c.Resource] = true
		}
		if len(r.Claims) > state.MaxClaims {
			t.Fatalf("%d claims in a report", len(r.Claims))
		}
	}
}

// FuzzReceive has leases with any values. The holder never has more than the bounds of the protocol.
func FuzzReceive(f *testing.F) {
	f.Add(int64(1), uint64(1), uint64(1), int64(5), int64(7), int64(9), int64(3), int64(4))
	f.Add(int64(-1), uint64(0), uint64(1)<<63, int64(-5), int64(1)<<62, int64(-9), int64(1)<<62, int64(1)<<62)
	f.Add(int64(1), uint64(1), uint64(1), int64(5), int64(7), int64(9), int64(3), int64(-4))
	f.Fuzz(func(t *testing.T, amount int64, seq, version uint64, length, refresh, safe, later, unknown int64) {
		h := New(Config{Name: "a", Rand: rand.New(rand.NewPCG(1, 1))})
		if err := h.Claim(0, resource); err != nil {
			t.Fatal(err)
		}
		h.Connected(0)
		var r Report
		h.Report(0, &r)
		h.Receive(1, []state.Lease{{
			Resource: resource, Amount: amount, Seq: seq, Version: state.Version{Term: version, Number: seq},
			Length: time.Duration(length), Refresh: time.Duration(refresh), Safe: safe, Unbacked: seq%2 == 0,
		}, {Resource: "other"}})
		now := headgate.Instant(max(later, 0) % int64(48*time.Hour))
		h.Advance(now)
		h.Report(now, &r)
		h.Receive(now, []state.Lease{{
			Resource: resource, Seq: r.Seq, Version: state.Version{Term: version + 1}, Length: time.Duration(length), Unknown: time.Duration(unknown), Safe: safe,
		}})
		if c := h.by[resource]; c.grace.Left(now) > state.MaxUnknown || c.kept && unknown <= 0 {
			t.Errorf("the safe amount stays in force for %v, and the server said %v", c.grace.Left(now), time.Duration(unknown))
		}
		if got := h.Amount(now, resource); got < 0 || got > state.MaxAmount {
			t.Errorf("the holder has %d", got)
		}
		if s := h.Status(now, resource); s.Left > MaxLength {
			t.Errorf("a lease is valid for %v", s.Left)
		}
		h.Report(now, &r)
		if next := h.Next(now); next < now && h.Report(now, &r) {
			t.Errorf("work is due in the past: %v", next)
		}
	})
}
