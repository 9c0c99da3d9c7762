package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/race"
)

// at is a time in the tests.
func at(seconds int64) time.Time { return time.Unix(1_790_000_000+seconds, 0).UTC() }

// member is an instance with an answer.
func member(name string, l *admin.Live) Member {
	l.Instance = name
	return Member{LiveInstance: admin.LiveInstance{Name: name, Address: name + ":9902", OK: true, Config: l.Config}, Live: l}
}

// lost is an instance that does not answer. It has the answer that it gave before.
func lost(name string, l *admin.Live) Member {
	m, seen := member(name, l), at(-12)
	m.OK, m.Error, m.Seen = false, "connection refused", &seen
	return m
}

// TestLive has what several instances make together: one that is missing, one that has restarted, and ones that differ.
func TestLive(t *testing.T) {
	t.Parallel()
	early, late := at(1), at(9)
	busy := func(requests, refused float64) *admin.Live {
		return &admin.Live{Config: "aaaaaaaaaa", Totals: admin.LiveTotals{
			Requests: requests, Refused: refused, RefusedBy: map[string]float64{"rules": refused}, InFlight: 2,
			ServiceTime: []uint64{1, 2}, DurationBounds: []float64{0.1},
		}}
	}
	rule := func(refused float64, mode string, since *time.Time, top string) *admin.Live {
		return &admin.Live{RulesTotal: 1, Rules: []admin.LiveRule{
			{Name: "search", Kind: "rule", Mode: mode, Limits: []string{"5/s"}, Refused: refused, Since: since, Last: since, Top: top},
		}}
	}
	for _, row := range []struct {
		name    string
		members []Member
		check   func(l *admin.Live) bool
	}{
		{"rates add up", []Member{member("a", busy(10, 4)), member("b", busy(5, 1))}, func(l *admin.Live) bool {
			return l.Totals.Requests == 15 && l.Totals.Refused == 5 && l.Totals.RefusedBy["rules"] == 5 && l.Totals.InFlight == 4 &&
				slices.Equal(l.Totals.ServiceTime, []uint64{2, 4}) && len(l.Attention) == 0 && l.Instances[1].Requests == 5
		}},
		{"a hung instance is missing from sums, and a fault", []Member{member("a", busy(10, 4)), lost("b", busy(75_000, 75_000))}, func(l *admin.Live) bool {
			return l.Totals.Requests == 10 && l.Totals.Refused == 4 && l.Attention[0].Level == "fault" && l.Attention[0].Name == "b" &&
				l.Attention[0].Text == "b (b:9902) does not answer, last 12s ago: connection refused: sums are over 1 of 2 instances" &&
				!l.Instances[1].OK && l.Instances[1].Requests == 0 && strings.HasPrefix(l.Sentence, "Over 1 of 2 instances: ")
		}},
		{"a restarted instance has no rate yet", []Member{member("a", busy(10, 4)), member("b", busy(0, 0))}, func(l *admin.Live) bool {
			return l.Totals.Requests == 10 && len(l.Attention) == 0
		}},
		{"other histograms are left out", []Member{member("a", busy(1, 1)), member("b", &admin.Live{Config: "aaaaaaaaaa", Totals: admin.LiveTotals{
			ServiceTime: []uint64{7, 7, 7}, DurationBounds: []float64{0.1, 0.2},
		}})}, func(l *admin.Live) bool { return slices.Equal(l.Totals.ServiceTime, []uint64{1, 2}) }},
		{"a rule", []Member{member("a", rule(3, "enforce", &late, "acme")), member("b", rule(5, "enforce", &early, "umbrella"))}, func(l *admin.Live) bool {
			r := l.Rules[0]
			return r.Refused == 8 && r.Since.Equal(early) && r.Last.Equal(late) && r.Top == "umbrella" && !r.Differs && l.RulesTotal == 1
		}},
		{"a rule with another mode", []Member{member("a", rule(3, "enforce", nil, "")), member("b", rule(5, "shadow", nil, ""))}, func(l *admin.Live) bool {
			return l.Rules[0].Differs
		}},
		{"a rule that one instance lacks", []Member{member("a", rule(3, "enforce", nil, "")), member("b", &admin.Live{})}, func(l *admin.Live) bool {
			return l.Rules[0].Differs
		}},
		{
			"a rule beyond the list of an instance",
			[]Member{member("a", rule(3, "enforce", nil, "")), member("b", &admin.Live{RulesTotal: 300})},
			func(l *admin.Live) bool { return !l.Rules[0].Differs && l.RulesTotal == 300 },
		},
		{"drift", []Member{member("a", busy(1, 0)), member("b", busy(1, 0)), member("c", &admin.Live{Config: "bbbbbbbbbb"})}, func(l *admin.Live) bool {
			return l.Attention[0].Level == "warning" &&
				l.Attention[0].Text == "instances have different configurations: a, b have aaaaaaaa; c has bbbbbbbb: reload those with the older one"
		}},
		{"faults of one store are one", []Member{
			member("a", &admin.Live{AttentionTotal: 1, Attention: []admin.Attention{{Level: "warning", About: "rule", Text: "w"}}}),
			member("b", &admin.Live{AttentionTotal: 61, Attention: []admin.Attention{{Level: "fault", About: "store", Text: "s", Since: &late}}}),
			member("c", &admin.Live{AttentionTotal: 1, Attention: []admin.Attention{{Level: "fault", About: "store", Text: "s", Since: &early}}}),
		}, func(l *admin.Live) bool {
			return len(l.Attention) == 2 && l.Attention[0].Instance == "b, c" && l.Attention[0].Since.Equal(early) && l.AttentionTotal == 62
		}},
		{"stores, throttle and clients", []Member{
			member("a", &admin.Live{
				Stores:   []admin.LiveStore{{Address: "r:1", State: "closed", Calls: 2}},
				Throttle: &admin.LiveThrottle{InFlight: 1, MeanWait: 0.5, Queued: map[string]int{"default": 1}},
				Clients:  []admin.LiveClient{{Name: "acme", Demand: 2, Size: 10}},
			}),
			member("b", &admin.Live{
				Stores:   []admin.LiveStore{{Address: "r:1", State: "open", Calls: 1, Failed: 1, LastError: "gone", LastErrorAt: &late}},
				Throttle: &admin.LiveThrottle{InFlight: 3, MeanWait: 0.1, Queued: map[string]int{"default": 2}, Hung: true},
				Clients:  []admin.LiveClient{{Name: "acme", Demand: 5, Size: 10}, {Name: "umbrella", Refused: 1}},
			}),
		}, func(l *admin.Live) bool {
			return l.Stores[0].State == "open" && l.Stores[0].Calls == 3 && l.Stores[0].LastError == "gone" && l.Throttle.InFlight == 4 &&
				l.Throttle.MeanWait == 0.5 && l.Throttle.Queued["default"] == 3 && l.Throttle.Hung && l.Clients[0].Name == "umbrella" &&
				l.Clients[1].Demand == 7 && l.Clients[1].Size == 20 && l.ClientsTotal == 2
		}},
		{"a change of a source is one mark", []Member{
			member("a", &admin.Live{Marks: []admin.Mark{{At: early, Text: "rules/search"}}}),
			member("b", &admin.Live{Marks: []admin.Mark{{At: late, Text: "reload"}, {At: early, Text: "rules/search"}}}),
		}, func(l *admin.Live) bool {
			return len(l.Marks) == 2 && l.Marks[0].Instance == "b" && l.Marks[1].Instance == "a, b"
		}},
	} {
		own := &admin.Live{Instance: "a", Now: at(0)}
		if l := OfLive(own, row.members, "refused", 50); !row.check(l) {
			t.Errorf("%s: %+v", row.name, l)
		}
	}
}

// anyLive is an answer with random rates.
func anyLive(random *rand.Rand) *admin.Live {
	l := &admin.Live{Totals: admin.LiveTotals{RefusedBy: map[string]float64{}}}
	number := func() float64 { return math.Floor(random.Float64() * 1000) } // Sums of whole numbers are exact in any order.
	l.Totals.Requests, l.Totals.Passed, l.Totals.Refused = number(), number(), number()
	for _, cause := range []string{"rules", "bans", "throttle"} {
		if random.IntN(2) == 0 {
			l.Totals.RefusedBy[cause] = number()
		}
	}
	for n := range random.IntN(6) {
		if random.IntN(3) > 0 {
			l.Rules = append(l.Rules, admin.LiveRule{Name: fmt.Sprint("rule", n), Kind: "rule", Passed: number(), Refused: number()})
		}
	}
	l.RulesTotal = len(l.Rules)
	return l
}

// TestLiveIsTheSum compares merged rates with those of a slow twin, which adds up one figure at a time, for any order of the instances.
// Instances without an answer never add a rate.
func TestLiveIsTheSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range race.Fewer(2000, 200) {
		var members []Member
		for n := range random.IntN(8) {
			m := member(fmt.Sprint("hg-", n), anyLive(random))
			if random.IntN(4) == 0 {
				m = lost(m.Name, m.Live)
			}
			members = append(members, m)
		}
		first := OfLive(&admin.Live{}, slices.Clone(members), "refused", 50)
		compareWithTwin(t, first, members)
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		second := OfLive(&admin.Live{}, slices.Clone(members), "refused", 50)
		if !reflect.DeepEqual(first.Totals, second.Totals) || !reflect.DeepEqual(first.Rules, second.Rules) {
			t.Fatalf("another order gives %+v, not %+v", second, first)
		}
	}
}

func compareWithTwin(t *testing.T, got *admin.Live, members []Member) {
	t.Helper()
	sum := func(of func(l *admin.Live) float64) (all float64) {
		for _, m := range members {
			if m.OK {
				all += of(m.Live)
			}
		}
		return all
	}
	equal := func(what string, got float64, of func(l *admin.Live) float64) {
		t.Helper()
		if want := sum(of); got != want {
			t.Fatalf("%s is %v, want %v", what, got, want)
		}
	}
	equal("requests", got.Totals.Requests, func(l *admin.Live) float64 { return l.Totals.Requests })
	equal("refused", got.Totals.Refused, func(l *admin.Live) float64 { return l.Totals.Refused })
	for _, cause := range []string{"rules", "bans", "throttle"} {
		equal(cause, got.Totals.RefusedBy[cause], func(l *admin.Live) float64 { return l.Totals.RefusedBy[cause] })
	}
	for n := range 6 {
		name, shown := fmt.Sprint("rule", n), 0.0
		for _, r := range got.Rules {
			if r.Name == name {
				shown += r.Refused
			}
		}
		equal(name, shown, func(l *admin.Live) (all float64) {
			for _, r := range l.Rules {
				if r.Name == name {
					all += r.Refused
				}
			}
			return all
		})
	}
	if !slices.IsSortedFunc(got.Rules, func(a, b admin.LiveRule) int { return int(b.Refused - a.Refused) }) {
		t.Fatalf("the rules are not sorted: %+v", got.Rules)
	}
}

// TestBounds: no list grows with the number of instances beyond its bound.
func TestBounds(t *testing.T) {
	t.Parallel()
	var members []Member
	for n := range 64 {
		l := &admin.Live{Config: fmt.Sprintf("%010d", n)}
		for k := range 60 {
			name := fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 100), n, k)
			l.Rules = append(l.Rules, admin.LiveRule{Name: name, Kind: "rule"})
			l.Clients = append(l.Clients, admin.LiveClient{Name: name})
			l.Stores = append(l.Stores, admin.LiveStore{Address: name})
			l.Marks = append(l.Marks, admin.Mark{Text: name})
			l.Attention = append(l.Attention, admin.Attention{Level: "fault", Text: name})
		}
		l.AttentionTotal = len(l.Attention)
		members = append(members, member(fmt.Sprint("hg-", n), l))
	}
	l := OfLive(&admin.Live{}, members, "name", 50)
	if len(l.Rules) != 50 || len(l.Clients) != maxClients || len(l.Stores) != maxStores || len(l.Marks) != maxMarks ||
		len(l.Attention) != maxAttention || l.AttentionTotal != 64*60+1 {
		t.Errorf("%d rules, %d clients, %d stores, %d marks, %d of %d", len(l.Rules), len(l.Clients), len(l.Stores), len(l.Marks),
			len(l.Attention), l.AttentionTotal)
	}
}
