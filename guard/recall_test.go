package guard_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/internal/refusals"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// remembering is a guard with a memory of refusals, on a store whose clock is that of the memory. The
// guard plain shares the store and remembers nothing.
type remembering struct {
	*guard.Guard

	t     *testing.T
	world *world
	store *tallied
	plain *guard.Guard
}

// started is 10 s after the start of a minute.
const started = headgate.Instant(1_699_999_990 * time.Second)

func remember(t *testing.T, bytes int64, domains ...guard.Domain) *remembering {
	t.Helper()
	s := &remembering{t: t, world: new(world)}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return started.Add(s.world.now) }})
	if err != nil {
		t.Fatal(err)
	}
	s.store = &tallied{Store: store}
	s.Guard = s.on(bytes, domains)
	s.plain = s.on(0, domains)
	return s
}

func (s *remembering) on(bytes int64, domains []guard.Domain) *guard.Guard {
	s.t.Helper()
	g, err := guard.New(guard.Config{Domains: domains, Store: s.store, RefusalsMemory: bytes, State: guard.NewStateAt(s.world)})
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// ask decides requests of clients, and returns the verdicts. A small letter comes from the memory.
func (s *remembering) ask(together bool, requests ...headgate.Request) string {
	s.t.Helper()
	answers := make([]guard.Answer, len(requests))
	s.DecideDescriptors(s.t.Context(), requests, answers, together)
	got := ""
	for i := range answers {
		word := map[headgate.Verdict]string{headgate.Allow: "A", headgate.Deny: "D"}[answers[i].Verdict]
		if len(answers[i].Results) == 1 && answers[i].Results[0].Recalled {
			word = "d"
			s.check(&requests[i], &answers[i])
		}
		got += word
	}
	return got
}

// check compares an answer from the memory with that of the store.
func (s *remembering) check(req *headgate.Request, a *guard.Answer) {
	s.t.Helper()
	one := *req
	one.Kind, one.Cost = headgate.Peek, 0
	var peeked [1]guard.Answer
	before := s.store.applied
	s.plain.DecideDescriptors(s.t.Context(), []headgate.Request{one}, peeked[:], false)
	s.store.applied = before
	got, want := a.Results[0].Decision, peeked[0].Results[0].Decision
	if want.Remaining != 0 || req.Cost == 0 && want.Verdict != headgate.Deny {
		s.t.Fatalf("%v is refused from memory, and the store would answer %+v", *req, want)
	}
	if want.Verdict == headgate.Deny { // An allowed Peek has no RetryAfter.
		want.Receipt = got.Receipt
		if req.Cost > want.Limit {
			want.Reason, want.RetryAfter = headgate.Never, 0
		}
		if got != want {
			s.t.Fatalf("%v: got %+v, want %+v", *req, got, want)
		}
	}
}

func refund(n int64, name string) headgate.Request {
	r := clients(name)[0]
	r.Kind, r.Cost = headgate.Refund, n
	return r
}

func peek(name string) headgate.Request {
	r := clients(name)[0]
	r.Kind, r.Cost = headgate.Peek, 0
	return r
}

// TestRecall is the story of a client with 3 units a minute.
func TestRecall(t *testing.T) {
	s := remember(t, 1<<16, shop(guard.FallbackError))
	for _, step := range []struct {
		why     string
		after   time.Duration
		ask     []headgate.Request
		want    string
		applied int
	}{
		{"the store refuses first", 0, clients("b", "b", "b", "b"), "AAAD", 1},
		{"and the memory then", 0, clients("b", "b"), "dd", 0},
		{"a request with another client asks once", 0, clients("b", "c", "b"), "dAd", 1},
		{"a look", 0, []headgate.Request{peek("b")}, "d", 0},
		{"until the window ends", 49 * time.Second, clients("b"), "d", 0},
		{"a new window", time.Second, clients("b"), "A", 1},
		{"over again", 0, clients("b", "b", "b"), "AAD", 1},
		{"from memory", 0, clients("b"), "d", 0},
		{"units are given back: 4 were counted", 0, []headgate.Request{refund(2, "b")}, "A", 1},
		{"which the memory notices", 0, clients("b", "b"), "AD", 1},
		{"once more", 0, clients("b"), "d", 0},
	} {
		s.world.now += step.after
		s.store.applied = 0
		if got := s.ask(false, step.ask...); got != step.want || s.store.applied != step.applied {
			t.Errorf("%s: got %s with %d calls of the store, want %s with %d", step.why, got, s.store.applied, step.want, step.applied)
		}
	}
	if got, want := s.Refusals(), (refusals.Stats{Found: 8, Missed: 12, Overwritten: 1, Entries: 1, Bytes: 273 * 240}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestRecallTogether: with stop-increment, the memory decides all descriptors or none.
func TestRecallTogether(t *testing.T) {
	s := remember(t, 1<<16, shop(guard.FallbackError))
	for _, step := range []struct {
		why     string
		ask     []headgate.Request
		want    string
		applied int
	}{
		{"the limit", clients("b", "b", "b"), "AAA", 1},
		{"over: c is not counted", clients("b", "c"), "DA", 1},
		{"the store tells how much c has", clients("b", "c"), "DA", 1},
		{"the memory alone", clients("b"), "d", 0},
		{"c has all its units", clients("c", "c", "c"), "AAA", 1},
		{"over", clients("c"), "D", 1},
		{"both from memory", clients("b", "c"), "dd", 0},
	} {
		s.store.applied = 0
		if got := s.ask(true, step.ask...); got != step.want || s.store.applied != step.applied {
			t.Errorf("%s: got %s with %d calls of the store, want %s with %d", step.why, got, s.store.applied, step.want, step.applied)
		}
	}
}

// TestRecallAfterReload: the memory outlives a reload, and knows how many units were counted.
func TestRecallAfterReload(t *testing.T) {
	s := remember(t, 1<<16, shop(guard.FallbackError))
	reload := func(count, bytes int64) {
		t.Helper()
		d := shop(guard.FallbackError)
		d.Descriptors[0].Leaf.Policies[0].Limit.Count = count
		if err := s.Reload(guard.Config{Domains: []guard.Domain{d}, Store: s.store, RefusalsMemory: bytes}); err != nil {
			t.Fatal(err)
		}
		s.plain = s.on(0, []guard.Domain{d})
	}
	for _, step := range []struct {
		why          string
		count, bytes int64
		ask          []headgate.Request
		want         string
	}{
		{"3 a minute", 3, 1 << 16, clients("b", "b", "b", "b", "b"), "AAADD"},
		{"2 a minute", 2, 1 << 16, clients("b"), "d"},
		{"4 a minute: 5 are counted, and 4 are known", 4, 1 << 16, clients("b"), "d"},
		{"a look", 4, 1 << 16, []headgate.Request{peek("b")}, "D"},
		{"now 5 are known", 4, 1 << 16, []headgate.Request{peek("b")}, "d"},
		{"6 a minute", 6, 1 << 16, clients("b", "b"), "AD"},
		{"no memory", 6, 0, clients("b"), "D"},
		{"an empty memory", 6, 1 << 16, clients("b", "b"), "DD"},
	} {
		reload(step.count, step.bytes)
		if got := s.ask(false, step.ask...); got != step.want {
			t.Errorf("%s: got %s, want %s", step.why, got, step.want)
		}
	}
	if err := s.Reload(guard.Config{Domains: []guard.Domain{shop(guard.FallbackError)}, Store: s.store, RefusalsMemory: -1}); err == nil {
		t.Error("a negative size is accepted")
	}
}

// TestRecallWithoutStore: what the memory knows needs no store.
func TestRecallWithoutStore(t *testing.T) {
	s := remember(t, 1<<16, shop(guard.FallbackError))
	s.ask(false, clients("b", "b", "b", "b")...)
	s.store.fails = errStoreGone
	answers := make([]guard.Answer, 2)
	s.DecideDescriptors(t.Context(), clients("b", "c"), answers, false)
	if r := answers[0].Closest(); r == nil || r.Fallback || !r.Recalled || answers[0].StoreError != nil {
		t.Errorf("a refusal from memory gives %+v, %v", r, answers[0].StoreError)
	}
	if r := answers[1].Closest(); r == nil || !r.Fallback {
		t.Errorf("another client gets %+v, want the fallback", r)
	}
}

// TestRecallAgainstTheStore runs random requests with limits of three kinds, sent limits, looks and refunds, and
// compares each answer from memory with the store's.
func TestRecallAgainstTheStore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := remember(t, 2000, shop(guard.FallbackError))
	rounds, recalled := race.Fewer(20_000, 4_000), 0
	for range rounds {
		s.world.now += time.Duration(r.IntN(400)) * time.Millisecond
		requests := make([]headgate.Request, 1+r.IntN(3))
		for i := range requests {
			requests[i] = randomOf(r)
		}
		for _, word := range s.ask(r.IntN(3) == 0, requests...) {
			if word == 'd' {
				recalled++
			}
		}
	}
	if recalled*20 < rounds {
		t.Errorf("%d answers came from memory: the test shows little", recalled)
	}
}

// randomOf is a request of one of nine clients. "a" has another limit than the others.
func randomOf(r *rand.Rand) headgate.Request {
	one := clients(string(rune('a' + r.IntN(9))))[0]
	switch r.IntN(12) {
	case 0:
		one.Kind, one.Cost = headgate.Peek, 0
	case 1:
		one.Kind, one.Cost = headgate.Refund, 1+r.Int64N(3)
	case 2, 3:
		one.Sent = headgate.Limit{Count: r.Int64N(4), Per: []time.Duration{time.Second, time.Minute}[r.IntN(2)]}
	case 4:
		one.Cost = 1 + r.Int64N(5)
	}
	return one
}

// TestRecallChangesNoVerdict: without refunds, a guard with a memory and one without it give the same
// verdicts, each on a store of its own.
func TestRecallChangesNoVerdict(t *testing.T) {
	for _, together := range []bool{false, true} {
		r := rand.New(rand.NewPCG(5, 6))
		with, without := remember(t, 2000, shop(guard.FallbackError)), remember(t, 0, shop(guard.FallbackError))
		for range race.Fewer(20_000, 4_000) {
			step := time.Duration(r.IntN(400)) * time.Millisecond
			with.world.now, without.world.now = with.world.now+step, without.world.now+step
			requests := make([]headgate.Request, 1+r.IntN(3))
			for i := range requests {
				for requests[i] = randomOf(r); requests[i].Kind == headgate.Refund || requests[i].Sent.Per > 0; {
					requests[i] = randomOf(r)
				}
				// Together, a look shares its Op with a take of the same client, and its verdict.
				if together && requests[i].Kind == headgate.Peek {
					requests[i].Kind, requests[i].Cost = headgate.Take, 2
				}
			}
			got, want := verdicts(with, together, requests), verdicts(without, together, requests)
			if got != want {
				t.Fatalf("together %t, at %v, %v: got %s, want %s", together, with.world.now, requests, got, want)
			}
		}
		if with.Refusals().Found == 0 || without.Refusals() != (refusals.Stats{}) {
			t.Errorf("together %t: the memories have %+v and %+v", together, with.Refusals(), without.Refusals())
		}
	}
}

func verdicts(s *remembering, together bool, requests []headgate.Request) string {
	answers := make([]guard.Answer, len(requests))
	s.DecideDescriptors(s.t.Context(), requests, answers, together)
	text := ""
	for i := range answers {
		text += fmt.Sprint(answers[i].Verdict, " ")
	}
	return text
}

// TestRecallAllocatesNothing covers refusals from memory and from the store.
func TestRecallAllocatesNothing(t *testing.T) {
	if race.On {
		return // The race detector makes pools drop memory.
	}
	s := remember(t, 1<<16, shop(guard.FallbackError))
	requests, answers := clients("b", "b", "b", "c"), make([]guard.Answer, 4)
	if got := testing.AllocsPerRun(1000, func() {
		s.DecideDescriptors(t.Context(), requests, answers, false)
	}); got > 0 {
		t.Errorf("%v allocations a call, want none", got)
	}
}
