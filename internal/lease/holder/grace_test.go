package holder

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// outage stops the server of a world for a time. The connections break, and are open again when the next server has started.
func (w *world) outage(down headgate.Instant) {
	w.server = nil
	for _, u := range w.users {
		u.cut(down)
	}
	w.at(w.now+down-1, w.start)
}

// TestSafeAfterTheOutage is the story of three holders of 100, which want 80, 80 and 2. Their leases end after 15 s, and their safe
// amounts are 20. The server fails for 30 s. The next one counts 100 as unknown for 15 s. Each row has the amounts of the holders
// and of one that joins the next server, and how many of the first three leases are lost.
func TestSafeAfterTheOutage(t *testing.T) {
	type row struct {
		what string
		at   headgate.Instant
		want map[OnLoss]string
	}
	for _, mode := range []OnLoss{Safe, Pessimistic, Optimistic} {
		w := newWorld(t, 1, 100_000)
		w.config.Resources[0].Safe, w.config.Restarted = 20_000, false
		w.start()
		for _, wants := range []int64{80_000, 80_000, 2_000} {
			w.join(wants, mode)
		}
		for _, r := range []row{
			{"with leases", 6 * sec, map[OnLoss]string{Safe: "49 49 2, 0", Pessimistic: "49 49 2, 0", Optimistic: "49 49 2, 0"}},
			{"with the last leases", 10 * sec, map[OnLoss]string{Safe: "49 49 2, 0", Pessimistic: "49 49 2, 0", Optimistic: "49 49 2, 0"}},
			{"without leases", 34 * sec, map[OnLoss]string{Safe: "20 20 20, 3", Pessimistic: "0 0 0, 3", Optimistic: "80 80 2, 3"}},
			{"the next server listens", 36*sec + 500*ms, map[OnLoss]string{Safe: "20 20 20, 3", Pessimistic: "0 0 0, 3", Optimistic: "80 80 2, 3"}},
			{"it has answered", 38 * sec, map[OnLoss]string{Safe: "20 20 20, 0", Pessimistic: "0 0 0, 0", Optimistic: "20 20 20, 0"}},
			{"with a newcomer", 50 * sec, map[OnLoss]string{Safe: "20 20 20 0, 0", Pessimistic: "0 0 0 0, 0", Optimistic: "20 20 20 0, 0"}},
			{"it knows all leases", 52 * sec, map[OnLoss]string{Safe: "32 32 2 32, 0", Pessimistic: "32 32 2 32, 0", Optimistic: "32 32 2 32, 0"}},
		} {
			w.run(r.at)
			switch r.what {
			case "with leases":
				w.outage(30 * sec)
			case "it has answered":
				w.at(40*sec, func() { w.join(80_000, mode) })
			}
			got, lost := "", 0
			for _, u := range w.users {
				s := u.h.Status(w.now, resource)
				got += fmt.Sprint(" ", s.Amount/1000)
				if s.Lost {
					lost++
				}
			}
			if got = fmt.Sprintf("%s, %d", got[1:], lost); got != r.want[mode] {
				t.Errorf("%v: %s: got %s, want %s", mode, r.what, got, r.want[mode])
			}
		}
	}
}

// TestMastersFailOften has an outage, and then masters that fail every 9 s. Leases are 15 s long, so that each master counts all of
// the capacity as unknown until it fails. The holders keep their safe amounts all the time, and together never have more than
// these. When a master stays, they share the capacity.
func TestMastersFailOften(t *testing.T) {
	for mode, least := range map[OnLoss]int64{Safe: 20_000, Pessimistic: 0, Optimistic: 20_000} {
		w := newWorld(t, 1, 100_000)
		w.config.Resources[0].Safe, w.config.Restarted = 20_000, false
		w.start()
		for range 4 {
			w.join(80_000, mode)
		}
		w.run(6 * sec)
		w.outage(30 * sec)
		for w.run(38 * sec); w.now < 200*sec; w.run(w.now + 100*ms) {
			if w.now%(9*sec) == 0 {
				w.outage(2 * sec)
			}
			for i, u := range w.users {
				if got := u.h.Amount(w.now, resource); got != least {
					t.Fatalf("%v: %v: holder %d has %d, want %d", mode, w.now.Sub(0), i, got, least)
				}
			}
		}
		if w.run(230 * sec); w.sum() != 100_000 {
			t.Errorf("%v: %d in the end, want all", mode, w.sum())
		}
	}
}

// TestServerThatNeverKnows has servers that always say that they may not know all leases. Each row has the leases of such a server, and
// when the safe amount of 20 ends at a holder that had lost its lease.
func TestServerThatNeverKnows(t *testing.T) {
	for _, r := range []struct {
		what    string
		unknown time.Duration
		terms   bool // Each answer has a new term.
		safe    int64
		until   headgate.Instant // 0: for as long as the test
		amount  int64
	}{
		{"as long as a lease", 30 * time.Second, false, 20, 30 * sec, 20},
		{"more than the longest lease", 1 << 62, false, 20, 3600 * sec, 20},
		{"a new server with each answer", 30 * time.Second, true, 20, 0, 20},
		{"a larger safe amount", 30 * time.Second, false, 1000, 30 * sec, 20},
		{"a smaller safe amount", 30 * time.Second, false, 7, 30 * sec, 7},
		{"a negative time", -1, false, 20, ms, 0},
		{"an old server", 0, false, 20, ms, 0},
	} {
		h := New(Config{Name: "a", Rand: rand.New(rand.NewPCG(1, 1))})
		if err := h.Claim(0, resource); err != nil {
			t.Fatal(err)
		}
		h.Want(resource, 100)
		h.Connected(0)
		var report Report
		receive := func(now headgate.Instant, lease state.Lease) {
			lease.Resource, lease.Seq, lease.Refresh = resource, report.Seq, time.Second
			h.Receive(now, []state.Lease{lease})
		}
		h.Report(0, &report)
		receive(0, state.Lease{Version: state.Version{Term: 1}, Amount: 50, Safe: 20, Length: 10 * time.Second})
		h.Disconnected()
		h.Advance(10 * sec)
		const back = 20 * sec
		h.Connected(back)
		ended := headgate.Instant(0)
		for now, number := back, uint64(0); now < back+4000*sec; now += 500 * ms {
			if h.Report(now, &report) {
				number++
				lease := state.Lease{Version: state.Version{Term: 2, Number: number}, Safe: r.safe, Length: time.Minute, Unknown: r.unknown}
				if r.terms {
					lease.Version.Term = 1 + number
				}
				receive(now, lease)
			}
			h.Advance(now)
			switch got := h.Amount(now, resource); {
			case got != 0 && got != r.amount || got != 0 && ended != 0:
				t.Fatalf("%s: %d after %v, want %d until %v", r.what, got, now.Sub(back), r.amount, r.until.Sub(0))
			case got == 0 && ended == 0:
				ended = now
			}
		}
		if want := back + r.until; r.until == 0 && ended != 0 || r.until != 0 && (ended < want-ms || ended > want+500*ms) {
			t.Errorf("%s: the safe amount ends after %v, want %v", r.what, ended.Sub(back), r.until.Sub(0))
		}
	}
}
