package memcached

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/limit"
)

const noon = headgate.Instant(1_704_110_400_000_000_000)

// decided gives the item after some decisions.
func decided(tb testing.TB, ps *foreign, policies ...headgate.Policy) *item {
	tb.Helper()
	it := &item{}
	p := &part{key: digestOf("k"), nonce: func() uint64 { return 1 }}
	for i, policy := range policies {
		plan, err := limit.Compile(policy)
		if err != nil {
			tb.Fatal(err)
		}
		ps.keep(plan)
		t := turn{plan: plan, window: uint8(3 * i), cost: 2}
		if plan.Calendar() {
			edges := calendar.Default().Edges(policy.Limit.Calendar, noon.Time())
			t.draw.Edges = &edges
		}
		p.turns = append(p.turns, t)
	}
	p.decisions = make([]headgate.Decision, len(p.turns))
	p.decide(it, noon)
	for _, s := range it.states {
		s.cell.Epoch = 0xabcd // The epoch is random.
	}
	return it
}

func everyKind() []headgate.Policy {
	return []headgate.Policy{
		{Limit: headgate.Limit{Count: 7, Per: time.Second, Burst: 20}, MaxWait: time.Second},
		{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 10, Per: time.Second}},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, CountRejected: true},
		{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, SubWindows: 4},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 10, Per: time.Minute}, BanFor: time.Hour},
	}
}

// calendarKinds are windows of the calendar. The golden bytes do not have them.
func calendarKinds() []headgate.Policy {
	return []headgate.Policy{
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Calendar: headgate.Day}},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Calendar: headgate.Year}, CountRejected: true},
	}
}

// TestItemForm checks that the stored form is that of the prefix: the names, the bytes of an
// item and the number of a counter. A changed form needs a new prefix, in version.go and here.
func TestItemForm(t *testing.T) {
	const second, minute, hour = "8094ebdc03", "80b09dc2df01", "80c0e285e368"
	form := map[string]string{"hg3:": strings.Join([]string{
		"hg3:glTDKakoUPbVOd03bw", " ", "hg3:glTDKakoUPbVOd03bw:r1a", " ", "hg3:glTDKakoUPbVOd03bw:c7:19xtf1ts0:a590", " ",
		"02", "8080b2d094ec8dd317", "05", // Mark, time and number of states. Each: window; algorithm, counts refused; the limit; epoch, until; what is counted.
		"00", "0000", "07" + second + "14" + "00" + second + "00", "abcd" + "eeced0d895ec8dd317", "edced0d895ec8dd317" + "05" + "00",
		"03", "0100", "0a" + second + "00" + "00" + "00" + "00", "abcd" + "8084e1af95ec8dd317", "8084e1af95ec8dd317" + "00" + "00",
		"06", "0201", "0a" + minute + "00" + "00" + "00" + "00", "abcd" + "80b0cf92f4ed8dd317", "8080b2d094ec8dd317" + "02" + "00",
		"09", "0400", "0a" + minute + "00" + "04" + "00" + "00", "abcd" + "80dc9683acee8dd317", "01" + "04" + "c0859636" + "02" + "00000000",
		"0c", "0500", "0a" + minute + "00" + "00" + "00" + hour, "abcd" + "80b0cf92f4ed8dd317", "8080b2d094ec8dd317" + "02" + "00",
	}, "")}[prefix]
	d := digestOf("k")
	got := strings.Join([]string{d.name(), d.noteOf(46), d.counterOf(7, time.Hour, noon)}, " ") + " " +
		hex.EncodeToString(decided(t, newForeign(), everyKind()...).render())
	if got != form {
		t.Errorf("under %s there is\n%s\nwant\n%s", prefix, got, form)
	}
	if units, epoch := unitsOf(0x0005_0000_0000_0003); units != 3 || epoch != 5 {
		t.Errorf("a counter's number is read as %d units of epoch %d, want 3 of 5", units, epoch)
	}
}

// TestItemRoundTrip: a written item is read without change, and has the same bytes when written
// again.
func TestItemRoundTrip(t *testing.T) {
	ps := newForeign()
	it := decided(t, ps, append(everyKind(), calendarKinds()...)...)
	b := it.render()
	again, err := parseItem(b, ps.plan)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range again.states {
		if !reflect.DeepEqual(s, it.states[i]) {
			t.Errorf("state %d: %+v became %+v", i, it.states[i], s)
		}
	}
	if !bytes.Equal(again.render(), b) {
		t.Error("read and written again it is not the same")
	}
	for n := range b {
		if _, err := parseItem(b[:n], ps.plan); err == nil {
			t.Errorf("the first %d bytes of %d are taken for an item", n, len(b))
		}
	}
	if _, err := parseItem(append(b, 0), ps.plan); err == nil {
		t.Error("an item with a byte behind it is taken")
	}
}

// TestEveryPolicyIsReadBack: the states of every policy that Prepare accepts can be read. The
// test has the longest periods, the most and the fewest sub-windows, and the largest counts.
func TestEveryPolicyIsReadBack(t *testing.T) {
	const day = 24 * time.Hour
	var all []headgate.Policy
	for _, per := range []time.Duration{limit.MinPer, time.Second, 180 * day, 365 * day, limit.MaxPer} {
		for _, count := range []int64{1, 3, headgate.MaxUnits} {
			l := headgate.Limit{Count: count, Per: per}
			for _, n := range []int{1, 2, 3, 255, limit.MaxSubWindows} {
				all = append(all, headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: n})
			}
			all = append(all,
				headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true}, headgate.Policy{Limit: l},
				headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: l},
				headgate.Policy{Algorithm: headgate.Ban, Limit: l, BanFor: limit.MaxPer})
		}
	}
	all = append(all, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 365 * day, Burst: 49}, MaxWait: 300 * day})
	for _, policy := range all {
		ps := newForeign()
		it := decided(t, ps, policy)
		if _, err := parseItem(it.render(), ps.plan); err != nil {
			t.Errorf("%s %s, N %d: %v", policy.Algorithm, policy.Limit, policy.SubWindows, err)
		}
	}
}

// TestItemIsBounded: the largest possible item fits on a server.
func TestItemIsBounded(t *testing.T) {
	plan, err := limit.Compile(headgate.Policy{
		Algorithm: headgate.SlidingWindow, SubWindows: limit.MaxSubWindows,
		Limit: headgate.Limit{Count: headgate.MaxUnits, Per: limit.MaxPer},
	})
	if err != nil {
		t.Fatal(err)
	}
	it := &item{}
	for w := range 256 {
		s := newState(uint8(w), plan)
		it.add(s)
		for i := range s.ring(plan, noon).Counters {
			s.rings[0].Counters[i] = headgate.MaxUnits
		}
		s.until = maxTime
	}
	if n := len(it.render()); n > maxItem*3/4 {
		t.Errorf("256 windows take %d bytes", n)
	}
}

// FuzzItem: no bytes make the reader panic. An accepted item can be judged, carried to another
// limit and written.
func FuzzItem(f *testing.F) {
	ps := newForeign()
	f.Add(decided(f, ps, everyKind()...).render())
	for _, p := range everyKind() {
		f.Add(decided(f, ps, p).render())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		ps := newForeign()
		it, err := parseItem(b, ps.plan)
		if err != nil {
			return
		}
		if again, err := parseItem(it.render(), ps.plan); err != nil || len(again.states) != len(it.states) {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		for _, s := range it.states {
			judgeAll(s, ps)
		}
	})
}

// judgeAll decides on a decoded state, under its own limit and under others.
func judgeAll(s *state, ps *foreign) {
	for _, policy := range append(everyKind(), s.plan.Policy) {
		plan, err := ps.plan(policy)
		if err != nil {
			continue
		}
		for _, now := range []headgate.Instant{1000, noon, noon.Add(50 * 365 * 24 * time.Hour), s.until, s.cell.Time} {
			p := &part{key: digestOf("k"), nonce: func() uint64 { return 1 }, decisions: make([]headgate.Decision, 1)}
			p.turns = []turn{{plan: plan, window: s.window, cost: 1}}
			it := &item{states: []*state{s.clone()}}
			p.decide(it, now)
			back := &unitReturn{}
			back.add(plan, &p.decisions[0].Receipt)
			back.decide(it, now.Add(time.Second))
			it.drop(now)
			it.render()
		}
	}
}

// TestForeignPolicies: the plans of other processes' policies are kept up to a bound, and
// invalid policies are refused.
func TestForeignPolicies(t *testing.T) {
	ps := newForeign()
	for i := range 2 * maxForeign {
		p, err := ps.plan(headgate.Policy{Limit: headgate.Limit{Count: int64(i + 1), Per: time.Second}})
		if err != nil || p.Policy.Limit.Count != int64(i+1) {
			t.Fatal(p, err)
		}
	}
	if n := len(ps.plans); n != maxForeign {
		t.Errorf("%d foreign plans are kept, want %d", n, maxForeign)
	}
	if _, err := ps.plan(headgate.Policy{Limit: headgate.Limit{Count: 1}}); err == nil {
		t.Error("a limit without a period has a plan")
	}
}

// TestCounterNumbers: a counter's number gives the units and the epoch, also when more units
// were subtracted than it had.
func TestCounterNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		epoch, units, off := uint64(1+r.Uint32N(1<<16-1)), r.Int64N(maxCounted+1), r.Int64N(maxCounted+1)
		gotUnits, gotEpoch := unitsOf(epoch<<epochShift + uint64(units) - uint64(off))
		if gotUnits != units-off || uint64(gotEpoch) != epoch {
			t.Fatalf("epoch %d, %d units and %d off became epoch %d and %d units", epoch, units, off, gotEpoch, gotUnits)
		}
	}
}

// TestServersOfKeys: keys are spread evenly, and the order of the servers does not matter. When
// a server is removed, only its own keys move.
func TestServersOfKeys(t *testing.T) {
	addrs := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"}
	open := func(addrs []string) *Store {
		s, nodes := &Store{}, []*node(nil)
		for _, a := range addrs {
			nodes = append(nodes, &node{addr: a, seed: seedOf(a)})
		}
		s.nodes.Store(&nodes)
		return s
	}
	reversed := slices.Clone(addrs)
	slices.Reverse(reversed)
	all, other, fewer := open(addrs), open(reversed), open(addrs[:4])
	count := map[string]int{}
	for range 50_000 {
		d := digestOf(string(binaryOf(rand.Uint64())))
		at := all.serverOf(&d).addr
		count[at]++
		if got := other.serverOf(&d).addr; got != at {
			t.Fatalf("a key is on %s, or, with the servers listed backwards, on %s", at, got)
		}
		if got := fewer.serverOf(&d).addr; at != addrs[4] && got != at {
			t.Fatalf("without %s a key of %s is on %s", addrs[4], at, got)
		}
	}
	for a, n := range count {
		if n < 9_000 || n > 11_000 { // 450 is five standard deviations.
			t.Errorf("%s has %d keys of 50,000", a, n)
		}
	}
}

func binaryOf(n uint64) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32), byte(n >> 40)}
}

// TestOlderCalendarForm: a count in the form without ended counts is dropped, and its receipts are void.
func TestOlderCalendarForm(t *testing.T) {
	ps := newForeign()
	form := decided(t, ps, calendarKinds()[0]).render()
	at := bytes.Index(form, []byte{byte(headgate.FixedWindow), byte(headgate.Day+endedForm) << 1})
	const ended = "\x00\x00\x00\x00\x00\x00"
	if at < 0 || !strings.HasSuffix(string(form), ended) {
		t.Fatalf("% x is no state of a day", form)
	}
	form[at+1] = byte(headgate.Day) << 1
	it, err := parseItem(form[:len(form)-len(ended)], ps.plan)
	if err != nil || len(it.states) != 1 || it.states[0].cell.Units != 0 || it.states[0].cell.Epoch == 0xabcd {
		t.Errorf("got %+v, %v", it, err)
	}
}
