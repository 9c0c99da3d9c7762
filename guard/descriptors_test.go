package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// shop is a domain with a limit of 3 a minute for each client, and 5 an hour for one of them.
func shop(fallback guard.Fallback) guard.Domain {
	limit := func(n int64, per time.Duration) *guard.Leaf {
		return &guard.Leaf{Policies: []headgate.Policy{{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: n, Per: per}, CountRejected: true, CountAll: true,
		}}}
	}
	return guard.Domain{Name: "shop", Fallback: fallback, Descriptors: []guard.Descriptor{
		{Key: "client", Leaf: limit(3, time.Minute)},
		{Key: "client", Value: "a", Leaf: limit(5, time.Hour)},
	}}
}

// clients asks for one unit of each client.
func clients(names ...string) []headgate.Request {
	all := make([]headgate.Request, len(names))
	for i, name := range names {
		all[i] = headgate.Request{
			Domain: "shop", Descriptors: headgate.Descriptors{{Name: "client", Value: name}}, Cost: 1,
		}
	}
	return all
}

func shopGuard(t *testing.T, c guard.Config) (*guard.Guard, *tallied) {
	t.Helper()
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	all := &tallied{Store: store}
	c.Store = all
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g, all
}

// TestDescriptorsAreOneApply decides many descriptors with one call of the store, in order.
func TestDescriptorsAreOneApply(t *testing.T) {
	g, store := shopGuard(t, guard.Config{Domains: []guard.Domain{shop(guard.FallbackError)}})
	answers := make([]guard.Answer, 6)
	g.DecideDescriptors(t.Context(), clients("b", "a", "b", "b", "b", "c"), answers, false)
	if store.applied != 1 || store.returned != 0 {
		t.Errorf("the store got %d calls of Apply and %d of Return, want 1 and 0", store.applied, store.returned)
	}
	got := ""
	for i := range answers {
		r := answers[i].Closest()
		got += fmt.Sprintf("%s %d/%d, ", answers[i].Verdict, r.Decision.Remaining, r.Limit.Count)
	}
	if want := "allow 2/3, allow 4/5, allow 1/3, allow 0/3, deny 0/3, allow 2/3, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !g.HasDomain("shop") || g.HasDomain("other") {
		t.Error("HasDomain does not tell the domains with a tree")
	}
}

// TestDescriptorFallbacks has a store that does not answer.
func TestDescriptorFallbacks(t *testing.T) {
	for _, c := range []struct {
		fallback guard.Fallback
		want     string
	}{
		{guard.FallbackError, "deny store_unavailable"},
		{guard.FallbackDeny, "deny store_unavailable"},
		{guard.FallbackAllow, "allow store_unavailable"},
		{guard.FallbackLocal, "allow store_unavailable"},
	} {
		local, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		g, store := shopGuard(t, guard.Config{Domains: []guard.Domain{shop(c.fallback)}, Local: local, LocalShare: 100})
		store.fails = errStoreGone
		answers := make([]guard.Answer, 1)
		g.DecideDescriptors(t.Context(), clients("b"), answers, false)
		r := answers[0].Closest()
		if got := fmt.Sprint(answers[0].Verdict, " ", r.Decision.Reason); got != c.want || !r.Fallback {
			t.Errorf("fallback %s: got %s, want %s by the fallback", c.fallback, got, c.want)
		}
		if !errors.Is(answers[0].StoreError, errStoreGone) {
			t.Errorf("fallback %s: StoreError is %v", c.fallback, answers[0].StoreError)
		}
	}
}

// TestInvalidDomains checks what New refuses.
func TestInvalidDomains(t *testing.T) {
	one := func(change func(*guard.Domain)) []guard.Domain {
		d := shop(guard.FallbackError)
		change(&d)
		return []guard.Domain{d}
	}
	for _, c := range []struct {
		why     string
		domains []guard.Domain
		want    string
	}{
		{"no name", one(func(d *guard.Domain) { d.Name = "" }), `guard: domain "": its name is empty: write the domain that requests name`},
		{"twice", []guard.Domain{shop(guard.FallbackDeny), shop(guard.FallbackDeny)}, `guard: domain "shop": it is listed twice: merge the lists`},
		{"local without a store", one(func(d *guard.Domain) { d.Fallback = guard.FallbackLocal }), `guard: domain "shop": ` + guard.ErrNoLocal.Error()},
		{"no limit", one(func(d *guard.Domain) { d.Descriptors[1].Leaf = &guard.Leaf{} }), `guard: domain "shop": shop.client_a: it has no limit: give it one, or make it unlimited`},
		{"replaces itself", one(func(d *guard.Domain) { d.Descriptors[0].Leaf.Name, d.Descriptors[0].Leaf.Replaces = "x", []string{"x"} }), `guard: domain "shop": shop.client: replaces lists "x": list the names of other limits`},
		{"leaky bucket", one(func(d *guard.Domain) { d.Descriptors[0].Leaf.Policies[0].Algorithm = headgate.LeakyBucket }), `guard: domain "shop": shop.client: leaky_bucket makes requests wait, and a decision server answers at once: use another algorithm`},
		{"off", one(func(d *guard.Domain) { d.Descriptors[0].Leaf.Mode = guard.Off }), `guard: domain "shop": shop.client: a leaf has mode enforce or shadow: leave the limit out instead of off`},
		{"one value twice", one(func(d *guard.Domain) { d.Descriptors[0].Value = "a" }), `guard: domain "shop": domain: "client_a": value appears twice among its siblings: remove one of them, or move its descriptors to the other`},
	} {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guard.New(guard.Config{Domains: c.domains, Store: store}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.why, err, c.want)
		}
	}
}

// TestDescriptorsAllocateNothing decides many descriptors again and again.
func TestDescriptorsAllocateNothing(t *testing.T) {
	if race.On {
		return // The race detector makes pools drop memory.
	}
	g, _ := shopGuard(t, guard.Config{Domains: []guard.Domain{shop(guard.FallbackError)}})
	names := make([]string, 20)
	for i := range names {
		names[i] = strconv.Itoa(i % 7)
	}
	requests, answers := clients(names...), make([]guard.Answer, len(names))
	for _, together := range []bool{false, true} {
		if got := testing.AllocsPerRun(1000, func() { g.DecideDescriptors(t.Context(), requests, answers, together) }); got > 0 {
			t.Errorf("together %t: %v allocations a call, want none", together, got)
		}
	}
}

// returning is a store that counts what is returned to it.
type returning struct {
	headgate.Store

	receipts int
}

func (s *returning) Return(ctx context.Context, receipts []headgate.Receipt) error {
	s.receipts += len(receipts)
	return s.Store.Return(ctx, receipts)
}

// TestTogetherReturnsNoSharedReceipt: a refused descriptor of a group returns no receipt, because an admitted one can have the same.
func TestTogetherReturnsNoSharedReceipt(t *testing.T) {
	memoryStore, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	store := &returning{Store: memoryStore}
	window := func(count int64, per time.Duration) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: count, Per: per}, SubWindows: 10, Named: true}
	}
	g, err := guard.New(guard.Config{Store: store, Domains: []guard.Domain{{Name: "shop", Descriptors: []guard.Descriptor{
		{Key: "client", Leaf: &guard.Leaf{Policies: []headgate.Policy{window(1, time.Minute), window(100, time.Hour)}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(sent headgate.Limit) headgate.Request {
		return headgate.Request{Domain: "shop", Cost: 1, Sent: sent, Descriptors: headgate.Descriptors{{Name: "client", Value: "a"}}}
	}
	requests := []headgate.Request{request(headgate.Limit{Count: 100, Per: time.Minute}), request(headgate.Limit{}), request(headgate.Limit{})}
	answers := make([]guard.Answer, len(requests))
	g.DecideDescriptors(t.Context(), requests, answers, true)
	verdicts := [3]headgate.Verdict{answers[0].Verdict, answers[1].Verdict, answers[2].Verdict}
	if verdicts != [3]headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} || store.receipts != 0 {
		t.Errorf("the verdicts are %v, and %d receipts were returned", verdicts, store.receipts)
	}
}
