package history

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// many is a stage with a number of rules with long names and three limits, of which one in busy refuses.
func many(tb testing.TB, number int) *stage {
	tb.Helper()
	s := newStage(tb, "rules: []\n", 2000)
	limit := headgate.Policy{Limit: headgate.Limit{Count: 1_000_000, Per: time.Hour}}
	rules := make([]guard.Rule, number)
	for i := range rules {
		rules[i] = guard.Rule{
			Rule:     rule.Rule{Name: fmt.Sprintf("%059d", i), Key: []rule.Part{}},
			Policies: []headgate.Policy{limit, limit, limit},
		}
	}
	s.rules(rules)
	s.shared, s.shares.Length = true, time.Second
	for i := range 1000 {
		s.shares.Clients = append(s.shares.Clients, fairshare.Share{Client: fmt.Sprintf("%0200d", i), Demand: 1 << 40, Size: 1 << 40})
	}
	for range 100 {
		s.store.Nodes = append(s.store.Nodes, report.Node{Name: fmt.Sprintf("%0100d", len(s.store.Nodes))})
	}
	return s
}

// busy counts decisions of one rule in ten.
func (s *stage) busy() {
	for i := range s.guard.Rules {
		if i%10 == 0 {
			s.allow(i, 3)
			s.deny(i, 1+i%7)
		}
	}
	for i := range s.shares.Clients {
		s.shares.Clients[i].AdmittedCounter += 10
		s.shares.Clients[i].RefusedTotal += 3
	}
}

// TestSizeOfLive: at 10,000 rules, 1,000 clients and 100 servers of the store with long names, the answer has at most 64 KiB.
func TestSizeOfLive(t *testing.T) {
	s := many(t, 10_000)
	for range 15 {
		s.second(s.busy)
	}
	for _, query := range []string{"", "?limit=200"} {
		code, text := s.get(t, "/api/v1/live"+query)
		l := new(admin.Live)
		if err := json.Unmarshal([]byte(text), l); err != nil || code != http.StatusOK {
			t.Fatalf("%d, %v", code, err)
		}
		t.Logf("%q has %d bytes with %d rules, %d clients, %d servers", query, len(text), len(l.Rules), len(l.Clients), len(l.Stores))
		if len(text) > maxLive || l.RulesTotal != 10_000 || l.ClientsTotal != 1000 || len(l.Rules) < 25 || len(l.Clients) < 25 {
			t.Errorf("%q: %d bytes, %d of %d rules, %d of %d clients", query, len(text), len(l.Rules), l.RulesTotal, len(l.Clients), l.ClientsTotal)
		}
	}
}

// TestSizeOfHistory: an answer above 256 KiB is an error that says what to ask for.
func TestSizeOfHistory(t *testing.T) {
	s := newStage(t, twoRules, 100)
	for range 310 {
		s.second(func() { s.allow(0, 1) })
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("series=rule.%d.passed", i))
	}
	if code, text := s.get(t, "/api/v1/history?"+strings.Join(names, "&")); code != http.StatusOK || len(text) > maxHistory {
		t.Errorf("100 idle series: %d, %d bytes", code, len(text))
	}
	for range 300 {
		s.second(func() {
			for _, total := range s.sampler.totals.all {
				s.sampler.add(total, 4_000_000_000)
			}
		})
	}
	names = names[:0]
	for _, total := range s.sampler.totals.all {
		names = append(names, "series="+total.series.Name.String())
	}
	for i := range maxSeries - len(names) {
		names = append(names, fmt.Sprintf("series=rule.%d.passed", i))
	}
	if code, text := s.get(t, "/api/v1/history?"+strings.Join(names, "&")); code == http.StatusOK && len(text) > maxHistory ||
		code != http.StatusOK && !strings.Contains(text, "fewer series") {
		t.Errorf("%d, %d bytes: %.100s", code, len(text), text)
	}
}

// TestFirstRules compares the order of rules with sorting all of them.
func TestFirstRules(t *testing.T) {
	s := many(t, 300)
	for range 3 {
		s.second(s.busy)
	}
	for name, order := range ordersTable {
		for _, n := range []int{1, 7, 50, 300} {
			first := s.sampler.first(n, order)
			want := slices.Clone(s.sampler.slots)
			want = slices.DeleteFunc(want, func(one *slot) bool { return !one.listed() })
			slices.SortFunc(want, func(a, b *slot) int { return strings.Compare(a.name, b.name) })
			slices.SortStableFunc(want, order)
			if !slices.Equal(first, want[:min(n, len(want))]) {
				t.Errorf("the first %d by %s differ from those of a sort", n, name)
			}
		}
	}
}

// TestMemoryOfRules compares what rules and clients take beside their series with config.HistoryBound.
func TestMemoryOfRules(t *testing.T) {
	const number = 10_000
	s := many(t, 0)
	s.second(nil)
	bytes := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	former := *s.config
	rules := make([]guard.Rule, number)
	for i := range rules {
		rules[i].Name = fmt.Sprintf("%059d", i)
	}
	s.rules(rules)
	before := bytes()
	s.second(nil)
	taken := bytes() - before
	s.config.Rules = rules
	s.config.Admin.HistorySeries, former.Admin.HistorySeries = 0, 0
	bound := s.config.HistoryBound() - former.HistoryBound()
	t.Logf("%d rules take %d bytes, %d each; bound %d", number, taken, taken/number, bound)
	if taken > bound {
		t.Errorf("%d rules take %d bytes, and the bound says %d", number, taken, bound)
	}
	var clients []fairshare.Share
	for i := range number {
		clients = append(clients, fairshare.Share{Client: fmt.Sprintf("%0100d", i)})
	}
	s.shares.Clients = clients
	before = bytes()
	s.second(nil)
	taken = bytes() - before
	t.Logf("%d clients take %d bytes, %d each", number, taken, taken/number)
	if taken/number > 640 {
		t.Errorf("a client takes %d bytes, and the bound says 640", taken/number)
	}
	runtime.KeepAlive(s)
}

// BenchmarkSecond is what the history costs an instance in each second.
func BenchmarkSecond(b *testing.B) {
	for _, number := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", number), func(b *testing.B) {
			s := many(b, number)
			s.shared, s.store.Nodes = false, nil
			s.second(s.busy)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s.busy()
				b.StartTimer()
				s.second(nil)
			}
		})
	}
}

// BenchmarkLive is what an open page costs an instance in each second.
func BenchmarkLive(b *testing.B) {
	for _, number := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", number), func(b *testing.B) {
			s := many(b, number)
			for range 15 {
				s.second(s.busy)
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(s.answers.made)
				if _, err := s.answer(query{"refused", 50, false}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
