package script

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// sample is the input of test batches. Fuzz targets reuse a sample, because compiling is slow.
type sample struct {
	names *Names
	plans []*Plan // one of each algorithm
}

func newSample(tb testing.TB) sample {
	tb.Helper()
	names, err := NewNames(3)
	if err != nil {
		tb.Fatal(err)
	}
	s := sample{names: names}
	for a := headgate.TokenBucket; a <= headgate.Ban; a++ {
		p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 7, Per: time.Second}}
		if a == headgate.SlidingWindow {
			p.SubWindows = 4
		} else if a == headgate.Ban {
			p.BanFor = time.Minute
		}
		plan, err := Compile(p)
		if err != nil {
			tb.Fatal(err)
		}
		s.plans = append(s.plans, plan)
	}
	return s
}

// batch gives a batch and its groups: a Take, a Peek, a grant and a Book.
func (s sample) batch(tb testing.TB) (*Batch, [][]headgate.Op, [][]*Plan, [][]Place) {
	tb.Helper()
	b, all := &Batch{}, s.plans
	b.Reset(s.names)
	var ops [][]headgate.Op
	var plans [][]*Plan
	var places [][]Place
	add := func(least int64, mode headgate.OpKind, some ...*Plan) {
		group, at := make([]headgate.Op, len(some)), make([]Place, len(some))
		for i := range some {
			group[i], at[i] = headgate.Op{Cost: 3, Kind: mode}, PlaceOf("k", uint8(i))
		}
		if err := b.Add(group, some, at, least); err != nil {
			tb.Fatal(err)
		}
		ops, plans, places = append(ops, group), append(plans, some), append(places, at)
	}
	add(0, headgate.Take, all...)
	add(0, headgate.Peek, all...)
	add(2, headgate.Take, all[0], all[2], all[3])
	add(0, headgate.Book, all[0], all[1])
	return b, ops, plans, places
}

// explainAny calls Read with a reply, and Explain for all groups. Both must not panic.
func (s sample) explainAny(tb testing.TB, reply string) error {
	tb.Helper()
	b, ops, plans, places := s.batch(tb)
	if err := b.Read(reply); err != nil {
		if b.Now() != 0 || b.Explain(0, ops[0], plans[0], places[0], make([]headgate.Decision, 9)) == nil {
			tb.Error("Explain after a failed Read: got decisions, want an error")
		}
		return err
	}
	for i := range ops {
		ds := make([]headgate.Decision, len(ops[i]))
		if err := b.Explain(i, ops[i], plans[i], places[i], ds); err != nil {
			return err
		}
		for _, d := range ds {
			if d.Remaining < 0 || d.Remaining > d.Limit || d.RetryAfter < 0 || d.ResetAfter < 0 || d.At < b.Now() || d.Receipt.Cost < 0 {
				tb.Errorf("reply %x gives an invalid decision: %+v", reply, d)
			}
		}
	}
	return nil
}

// plain gives a correct reply for new keys, with a time in 2024.
func (s sample) plain(tb testing.TB) string {
	tb.Helper()
	b, ops, _, _ := s.batch(tb)
	if len(ops) != b.Len() {
		tb.Fatalf("the batch has %d groups, want %d", b.Len(), len(ops))
	}
	numbers := make([]int64, b.width)
	numbers[0] = 1_704_110_400_000_000
	numbers[b.groups[2].from] = 3 // the granted units
	return packed(numbers...)
}

// FuzzReply: any reply gives an error or valid decisions.
func FuzzReply(f *testing.F) {
	s := newSample(f)
	plain := s.plain(f)
	f.Add(plain)
	f.Add("")
	f.Add(strings.Repeat("\xff", len(plain)))
	for i := 0; i < len(plain); i += 8 {
		for _, n := range []float64{-1, 8, 1<<53 - 1, math.NaN()} {
			bits := packed(0)
			for j, u := 0, math.Float64bits(n); j < 8; j, u = j+1, u>>8 {
				bits = bits[:j] + string([]byte{byte(u)}) + bits[j+1:]
			}
			f.Add(plain[:i] + bits + plain[i+8:])
		}
	}
	f.Fuzz(func(t *testing.T, reply string) { _ = s.explainAny(t, reply) })
}

// TestReplies: a correct reply is read, and any other reply is an error.
func TestReplies(t *testing.T) {
	s := newSample(t)
	plain := s.plain(t)
	if err := s.explainAny(t, plain); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct{ reply, want string }{
		"an empty reply":         {"", "has 0 bytes"},
		"two replies":            {plain + plain, "bytes for"},
		"not a number":           {packed(1) + strings.Repeat("\xff", len(plain)-8), "the number NaN"},
		"the time 0":             {packed(0) + plain[8:], "set its clock"},
		"a bucket too far ahead": {plain[:8] + packed(1<<51) + plain[16:], "report this as a bug"},
		"a time after 2112":      {packed(1<<52) + plain[8:], "set its clock"},
	} {
		if err := s.explainAny(t, c.reply); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
}
