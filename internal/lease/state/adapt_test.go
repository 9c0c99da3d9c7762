package state

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// adapting is a root with one resource of 100/s and holders that share it.
type adapting struct {
	t    *testing.T
	s    *Server
	now  headgate.Instant
	seq  uint64
	out  Out
	last map[string]Lease
}

func newAdapting(t *testing.T, least int64, holders int) *adapting {
	t.Helper()
	a := &adapting{t: t, s: start(t, config(Resource{Algorithm: MaxMin, Capacity: 100 * unit, MinCapacity: least * unit}), 0), last: map[string]Lease{}}
	for i := range holders {
		a.report(fmt.Sprint("h", i), 0, 0)
	}
	a.pass(time.Second)
	return a
}

// report says what a holder has spent since its last report, and how much of it the resource refused.
func (a *adapting) report(holder string, spent, refused int64) {
	a.t.Helper()
	a.seq++
	has := a.last[holder]
	claim := Claim{Resource: "db", Wants: 100 * unit, Version: has.Version, Holds: has.Amount, Left: time.Minute, Spent: spent, Refused: refused}
	if err := a.s.Receive(a.now, "", &Report{Holder: holder, Seq: a.seq, Claims: []Claim{claim}}, &a.out); err != nil {
		a.t.Fatal(err)
	}
	a.deliver()
}

// pass lets time pass.
func (a *adapting) pass(d time.Duration) {
	for end := a.now.Add(d); ; {
		at, ok := a.s.Next()
		if !ok || at > end {
			a.now = end
			return
		}
		a.now = max(at, a.now)
		a.s.Advance(a.now, &a.out)
		a.deliver()
	}
}

func (a *adapting) deliver() {
	for _, d := range a.out.Leases {
		a.last[d.Holder] = d.Lease
	}
	a.out.Reset()
}

// capacity gives the capacity in units.
func (a *adapting) capacity() float64 {
	usage, _ := a.s.Usage(a.now, "db")
	return float64(usage.Capacity) / unit
}

// second lets each holder spend its lease for a second. The resource refuses a part of the calls in percent.
func (a *adapting) second(holders int, part int64) {
	for i := range holders {
		name := fmt.Sprint("h", i)
		spent := a.last[name].Amount
		a.report(name, spent, spent*part/100)
	}
	a.pass(time.Second)
}

// TestMinCapacity is the story of a resource of 100/s that refuses calls. Each row follows the one before.
func TestMinCapacity(t *testing.T) {
	for least, rows := range map[int64][]struct {
		what    string
		seconds int
		refused int64 // percent
		want    float64
	}{
		20: {
			{"it refuses nothing", 10, 0, 100},
			{"it refuses 4 %: as much comes back", 20, 4, 100},
			{"it refuses 5 %: 100 - 5 + 4 after the first 2 s", 3, 5, 99},
			{"and in the end 5 % are as much as what comes back", 150, 5, 80},
			{"it refuses everything: at most a tenth is taken", 2, 100, 76},
			{"in the end 10 % are as much as what comes back", 90, 100, 40},
			{"it refuses nothing: 2 a second come back", 10, 0, 60},
			{"until all is back", 22, 0, 100},
		},
		70: {{"the least capacity", 60, 100, 70}},
		0:  {{"without min_capacity, nothing changes", 60, 100, 100}},
	} {
		a := newAdapting(t, least, 3)
		for _, r := range rows {
			for range r.seconds {
				a.second(3, r.refused)
			}
			if got := a.capacity(); got < r.want-1.5 || got > r.want+1.5 {
				t.Errorf("min_capacity %d: %s: capacity %v, want %v", least, r.what, got, r.want)
			}
		}
	}
}

// TestFewCannotLower: a report counts up to the lease of its holder. So holders with less than 4 % of the units cannot lower the
// capacity, whatever they report, and whether the others report or not. Holders with more can.
func TestFewCannotLower(t *testing.T) {
	for _, c := range []struct {
		holders, liars int
		others         bool // report their calls
		want           float64
	}{{30, 1, true, 100}, {30, 1, false, 100}, {60, 2, true, 100}, {20, 1, true, 80}, {20, 2, false, 40}} {
		a := newAdapting(t, 20, c.holders)
		for range 200 {
			for i := range c.holders {
				name := fmt.Sprint("h", i)
				switch {
				case i < c.liars:
					a.report(name, MaxAmount, MaxAmount)
				case c.others:
					a.report(name, a.last[name].Amount, 0)
				default:
					a.report(name, 0, 0)
				}
			}
			a.pass(time.Second)
			if got := a.capacity(); c.want == 100 && got < 99 {
				t.Fatalf("%d of %d holders lower the capacity to %v", c.liars, c.holders, got)
			}
		}
		if got := a.capacity(); got < c.want-2 || got > c.want+2 {
			t.Errorf("%d of %d holders: capacity %v, want %v", c.liars, c.holders, got, c.want)
		}
	}
}

// TestAdaptedSlots: slots are whole, and calls count by the parts that were refused.
func TestAdaptedSlots(t *testing.T) {
	a := newAdapting(t, 20, 0)
	a.s = start(t, config(Resource{Algorithm: MaxMin, Capacity: 100, MinCapacity: 50, Slots: true}), 0)
	for range 60 {
		a.report("h", 7*unit, 7*unit)
		a.pass(time.Second)
	}
	if usage, _ := a.s.Usage(a.now, "db"); usage.Capacity != 50 {
		t.Errorf("%d slots, want 50", usage.Capacity)
	}
}

// TestRefusalsBelowAServer: a leaf adds up what its holders say, and the root adapts the capacity. An idle holder of the leaf that
// reports no calls counts with its lease.
func TestRefusalsBelowAServer(t *testing.T) {
	root := newAdapting(t, 20, 0)
	leaf := newAdapting(t, 0, 0)
	leaf.s = start(t, Config{Child: true, Callers: map[string]Caller{}, Lease: 20 * time.Second, Refresh: 5 * time.Second}, 0)
	var down Out
	exchange := func() {
		leaf.s.Advance(leaf.now, &leaf.out)
		if up := &leaf.out.Up; up.Seq != 0 {
			up.Holder = "leaf"
			if err := root.s.Receive(root.now, "server", up, &down); err != nil {
				t.Fatal(err)
			}
		}
		root.s.Advance(root.now, &down)
		for _, d := range down.Leases {
			leaf.s.ReceiveParent(leaf.now, []Lease{d.Lease})
		}
		down.Reset()
		leaf.deliver()
	}
	for step := range 1200 {
		root.now, leaf.now = root.now.Add(100*time.Millisecond), leaf.now.Add(100*time.Millisecond)
		if step%10 == 0 {
			spent := leaf.last["a"].Amount
			leaf.report("a", spent, spent/10)
			leaf.report("b", 0, 0)
		}
		exchange()
	}
	if got := root.capacity(); got < 78 || got > 82 {
		t.Errorf("capacity %v, want 80: 5 %% of the units of the leaf are refused", got)
	}
}

// reported is one report in the twin.
type reported struct {
	at                   headgate.Instant
	spent, refused, most int64
}

// slowPart computes the refused part from all reports so far. It replays them for each holder.
func slowPart(now headgate.Instant, holders map[string][]reported, has map[string]int64) float64 {
	var all, lost int64
	for name, reports := range holders {
		var rate, failed, spent, refused int64
		var since, until headgate.Instant
		begun := false
		for _, r := range reports {
			if !begun {
				begun, since = r.spent > 0, r.at
				continue
			}
			spent, refused = spent+r.spent, refused+r.refused
			if elapsed := r.at.Sub(since); elapsed >= time.Second {
				rate, failed = 0, 0
				if spent > 0 {
					rate = int64(min(float64(spent)/elapsed.Seconds(), float64(r.most)))
					failed = int64(float64(rate) * float64(refused) / float64(spent))
				}
				until = r.at.Add(max(elapsed, 2*time.Second))
				since, spent, refused = r.at, 0, 0
			}
		}
		switch {
		case !begun:
			all += has[name]
		case now < until:
			all, lost = all+rate, lost+failed
		}
	}
	if all == 0 {
		return 0
	}
	return float64(lost) / float64(all)
}

// counted gives what the lease of a holder counts when its next report has acknowledged it.
func (a *adapting) counted(holder string) int64 {
	c := a.s.claimed[key{a.s.holders[holder], a.s.resources["db"]}]
	if c == nil {
		return 0
	}
	l := c.ledger
	l.ack(a.last[holder].Version, a.last[holder].Amount)
	return l.count()
}

// TestAdaptTwin compares the capacity with one that is computed from all reports.
func TestAdaptTwin(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		a := newAdapting(t, 20, 0)
		reports, want, before := map[string][]reported{}, 100*float64(unit), headgate.Instant(0)
		cuts := 0
		for range 600 {
			a.now = a.now.Add(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
			name := fmt.Sprint("h", rnd.IntN(5))
			spent := rnd.Int64N(40 * unit)
			refused := rnd.Int64N(spent + 1)
			if name == "h4" {
				spent, refused = 0, 0
			}
			most := a.counted(name)
			a.report(name, spent, refused)
			reports[name] = append(reports[name], reported{a.now, spent, refused, most})
			has := map[string]int64{}
			for _, h := range a.s.Holders(a.now, "db", nil) {
				has[h.Holder] = h.Ledger
			}
			part := slowPart(a.now, reports, has)
			a.s.Advance(a.now, &a.out)
			a.deliver()
			r := a.s.resources["db"]
			if before == 0 {
				before = r.adapted // The first report has made the resource.
			}
			if r.adapted == before {
				continue
			}
			if r.adapted < before.Add(adaptEvery) {
				t.Fatalf("a change after %v", r.adapted.Sub(before))
			}
			before = r.adapted
			want = float64(int64(min(max(want*(1-min(part, 0.1))+4*unit, 20*unit), 100*unit)))
			if part > 0.04 {
				cuts++
			}
			if got := float64(r.capacity); got != want {
				t.Fatalf("seed %d at %v: capacity %v, want %v", seed, a.now, got, want)
			}
		}
		if cuts < 5 {
			t.Errorf("seed %d: only %d cuts", seed, cuts)
		}
	}
}
