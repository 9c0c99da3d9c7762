package fairshare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// line is one line of a test table: a client, the time and number of its requests, and how
// many pass. Without a client, the line has the expected sizes.
type line struct {
	says     string
	at       time.Duration // since the start
	client   string
	requests int   // number of requests; 0 means one
	cost     int64 // cost of each request; 0 counts as 1
	passes   int
	sizes    string // "A=10 B=30", or "A" for a known client, or "!A" for an unknown client
}

// cycles converts cycles of ten seconds to a duration.
func cycles(n float64) time.Duration { return time.Duration(n * float64(storyCycle)) }

const storyCycle = 10 * time.Second

// storyStart is the start of a cycle.
const storyStart = headgate.Instant(1_000_000 * storyCycle)

// plain returns a Config with 40 units per cycle.
func plain(change func(*Config)) Config {
	c := Config{Capacity: 40, Cycle: storyCycle, Reservation: 10, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000}
	if change != nil {
		change(&c)
	}
	return c
}

// pinned gives each name the weight 1.
func pinned(names string) map[string]int64 {
	weights := map[string]int64{}
	for name := range strings.FieldsSeq(names) {
		weights[name] = 1
	}
	return weights
}

func storyOf(t *testing.T, c Config) *Limiter {
	t.Helper()
	l, err := New(storyStart, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// noNewcomers marks all clients as clients that sent requests before, so that they cannot use the
// credit for newcomers.
func noNewcomers(l *Limiter) {
	for _, who := range l.clients {
		who.active = max(2, who.active)
	}
	for _, x := range l.current.Load().all {
		x.newcomer = false
	}
}

// tell runs a test table, and checks the fields of each decision.
func tell(t *testing.T, l *Limiter, story []line) {
	t.Helper()
	for i, e := range story {
		now := storyStart.Add(e.at)
		if e.client == "" {
			if got := sizesOf(l.Shares(now)); !sizesAre(got, e.sizes) {
				t.Errorf("line %d, %s:\n got %s\nwant %s", i, e.says, got, e.sizes)
			}
			continue
		}
		passes := 0
		for range max(1, e.requests) {
			d, _ := l.Take(now, Request{Client: e.client, Cost: e.cost})
			checkRetry(t, &d, l.current.Load().Cycle)
			if d.Verdict == headgate.Allow {
				passes++
			}
		}
		if passes != e.passes {
			t.Errorf("line %d, %s: %d requests pass, want %d", i, e.says, passes, e.passes)
		}
		if _, fault := ledgerOf(l); fault != "" {
			t.Errorf("line %d, %s: %s", i, e.says, fault)
		}
	}
}

func sizesAre(got, want string) bool {
	if name, absent := strings.CutPrefix(want, "!"); want != "" && !strings.Contains(want, "=") {
		return strings.Contains(" "+got, " "+name+"=") != absent
	}
	return got == want
}

func sizesOf(s Shares) string {
	var words []string
	for _, c := range s.Clients {
		words = append(words, fmt.Sprintf("%s=%d", c.Client, c.Size))
	}
	return strings.Join(words, " ")
}

// TestArticle has the four cycles of the article. Both reclaims must give the sizes of the
// article, with and without trusted names. The test does not check which requests are refused.
func TestArticle(t *testing.T) {
	demands := [][4]int{{2, 15, 10, 10}, {3, 15, 50, 10}, {0, 15, 50, 5}}
	sizes := []string{"A=10 B=10 C=10 D=10", "A=5 B=15 C=10 D=10", "A=3 B=11 C=16 D=10", "A=1 B=12 C=22 D=5"}
	for n := range 2 * len(Reclaims()) {
		reclaim, trust := Reclaims()[n/2], n%2 == 1
		for _, c := range []struct {
			says   string
			before int // earlier cycles with equal demands
		}{{"all clients were known in the previous cycle", 1}, {"the first cycle of the limiter", 0}, {"all clients have been known for long", 5}} {
			t.Run(fmt.Sprintf("%v/trusted names %v/%s", reclaim, trust, c.says), func(t *testing.T) {
				l := storyOf(t, plain(func(c *Config) { c.Reclaim, c.TrustNames = reclaim, trust }))
				at := time.Duration(0)
				for range c.before {
					askAll(l, at, 10, 10, 10, 10)
					at += storyCycle
				}
				for i, want := range sizes {
					if i < len(demands) {
						d := demands[i]
						askAll(l, at, d[0], d[1], d[2], d[3])
					}
					if got := sizesOf(l.Shares(storyStart.Add(at + storyCycle - 1))); got != want {
						t.Errorf("cycle %d: %s, want %s", i+1, got, want)
					}
					at += storyCycle
				}
			})
		}
	}
}

// askAll sends the given numbers of requests of A, B and so on, alternating, in the cycle that
// starts at from.
func askAll(l *Limiter, from time.Duration, requests ...int) {
	const turns = 100
	for turn := range turns {
		for i, n := range requests {
			if turn < n {
				now := storyStart.Add(from + storyCycle*time.Duration(turn)/turns)
				l.Take(now, Request{Client: string(rune('A' + i))})
			}
		}
	}
}

// TestEdges checks edge cases of the division, under both reclaims.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		says   string
		config func(*Config)
		story  []line
	}{
		{"capacity 0", func(c *Config) { c.Capacity = 0 }, []line{
			{says: "admits nothing", client: "A", requests: 3},
			{says: "no client has units", sizes: "A=0"},
			{says: "no units in the next cycle", at: cycles(1), client: "A", requests: 3},
			{says: "no units for other clients", at: cycles(1), client: "B"},
		}},
		{"one client", nil, []line{
			{says: "has all", client: "A", requests: 50, passes: 40},
			{says: "the size is the capacity", sizes: "A=40"},
			{says: "the whole capacity in every cycle, also in one request", at: cycles(1), client: "A", cost: 40, passes: 1},
			{says: "the whole capacity after idle cycles", at: cycles(7.5), client: "A", requests: 50, passes: 40},
		}},
		{"more clients than capacity", func(c *Config) { c.Capacity, c.Weights = 2, pinned("A B C D") }, []line{
			{says: "the names that sort first have one unit each", sizes: "A=1 B=1 C=0 D=0"},
			{says: "D has no units", client: "D"},
			{says: "B has one unit", client: "B", requests: 2, passes: 1},
			{says: "A has one unit", client: "A", requests: 2, passes: 1},
			{says: "no units are left", at: cycles(0.999), client: "D"},
		}},
		{"a capacity that is not divisible", func(c *Config) { c.Capacity, c.Weights = 41, pinned("A B C") }, []line{
			{says: "the extra units go to the names that sort first", sizes: "A=14 B=14 C=13"},
			{says: "A", client: "A", requests: 20, passes: 14},
			{says: "B", client: "B", requests: 20, passes: 14},
			{says: "C", client: "C", requests: 20, passes: 13},
		}},
		{"weights", func(c *Config) { c.Weights = map[string]int64{"home-loan": 2, "B": 1, "C": 1} }, []line{
			{says: "weight 2 doubles the share", sizes: "B=10 C=10 home-loan=20"},
			{says: "the client can use the doubled share", client: "home-loan", requests: 50, passes: 20},
			{says: "B cannot use more", client: "B", requests: 50, passes: 10},
			{says: "C cannot use more", client: "C", requests: 50, passes: 10},
			{says: "the same with large demands in the next cycle", at: cycles(1), sizes: "B=10 C=10 home-loan=20"},
			{says: "weight 2 doubles the reservation of an idle client", at: cycles(1), client: "B", requests: 50, passes: 10},
			{says: "the reservation is 2, and C's is 1", at: cycles(2), sizes: "B=37 C=1 home-loan=2"},
		}},
		{"a cost above the capacity", func(c *Config) { c.Weights = pinned("A B") }, []line{
			{says: "never passes", client: "A", cost: 41},
			{says: "a cost equal to the share passes", client: "A", cost: 20, passes: 1},
			{says: "a very large cost is refused", client: "A", cost: 1 << 62},
			{says: "the refused cost takes nothing from B", client: "B", cost: 20, passes: 1},
			{says: "the cost counts as the whole capacity", at: cycles(1), sizes: "A=20 B=20"},
		}},
		{"a cost below 1", nil, []line{
			{says: "is 1", client: "A", cost: -7, requests: 50, passes: 40},
		}},
	} {
		for _, reclaim := range Reclaims() {
			t.Run(c.says+"/"+reclaim.String(), func(t *testing.T) {
				config := plain(c.config)
				config.Reclaim = reclaim
				tell(t, storyOf(t, config), c.story)
			})
		}
	}
}

// TestNeverHasNoRetryAfter checks that a request that can never pass has no RetryAfter, and
// that other refused requests have one.
func TestNeverHasNoRetryAfter(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights = pinned("A B") }))
	for _, c := range []struct {
		says   string
		client string
		cost   int64
		want   headgate.Reason
	}{
		{"above the capacity", "A", 41, headgate.Never},
		{"the whole capacity, more than A's share", "A", 40, headgate.OverShare},
		{"its share", "A", 20, headgate.WithinLimit},
		{"no units are left", "A", 1, headgate.OverShare},
		{"far above", "A", 1 << 62, headgate.Never},
	} {
		d, receipt := l.Take(storyStart, Request{Client: c.client, Cost: c.cost})
		if checkRetry(t, &d, storyCycle); d.Reason != c.want || !d.Receipt.Empty() || (receipt == Receipt{}) != (d.Verdict == headgate.Deny) {
			t.Errorf("%s: %+v, want %v", c.says, d, c.want)
		}
	}
}

// TestRetryAfterIsSpread checks that requests refused at one time retry evenly over the first
// half of the next cycle.
func TestRetryAfterIsSpread(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Capacity, c.Weights = 1, pinned("A") }))
	var tenths [10]int
	const n = 10_000
	for range n {
		d, _ := l.Take(storyStart.Add(cycles(0.3)), Request{Client: "A"})
		if d.Verdict == headgate.Deny {
			checkRetry(t, &d, storyCycle)
			tenths[10*(d.RetryAfter-d.ResetAfter)/(storyCycle/2)]++
		}
	}
	for i, got := range tenths {
		if got < n/10-200 || got > n/10+200 {
			t.Errorf("%d of %d requests retry in tenth %d of the half cycle, want %d", got, n, i, n/10)
		}
	}
}

// TestSettingsAreWords checks the configuration words, and the errors for invalid settings.
func TestSettingsAreWords(t *testing.T) {
	if got := fmt.Sprint(Reclaims()); got != "[at_once next_cycle]" || Reclaim(9).String() != "next_cycle" {
		t.Errorf("Reclaims() is %s and the invalid Reclaim(9) is %s, want at_once, next_cycle and next_cycle", got, Reclaim(9))
	}
	for says, change := range map[string]func(*Config){
		"Capacity":           func(c *Config) { c.Capacity = share.MaxCapacity + 1 },
		"Capacity is -1":     func(c *Config) { c.Capacity = -1 },
		"Cycle":              func(c *Config) { c.Cycle = LeastCycle - 1 },
		"Cycle is 1h0m0.0":   func(c *Config) { c.Cycle = MostCycle + 1 },
		"Reservation":        func(c *Config) { c.Reservation = 101 },
		"Division":           func(c *Config) { c.Division = 2 },
		"Reclaim":            func(c *Config) { c.Reclaim = 2 },
		"NewClientsPerCycle": func(c *Config) { c.NewClientsPerCycle = -1 },
		"ForgetAfter":        func(c *Config) { c.ForgetAfter = 0 },
		"MaxClients":         func(c *Config) { c.MaxClients = MostClients + 1 },
		"has 2 clients":      func(c *Config) { c.MaxClients, c.Weights = 1, pinned("A B") },
		`"A" is 0`:           func(c *Config) { c.Weights = map[string]int64{"A": 0} },
		`"A" is 1000001`:     func(c *Config) { c.Weights = map[string]int64{"A": MostWeight + 1} },
		`"" is 1`:            func(c *Config) { c.Weights = map[string]int64{"": 1} },
		`"others" is 1`:      func(c *Config) { c.Weights = map[string]int64{Others: 1} },
	} {
		if _, err := New(0, plain(change)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("New with an invalid setting (%s) returns error %v", says, err)
		}
		l := storyOf(t, plain(nil))
		if err := l.Reload(storyStart, plain(change)); err == nil || l.current.Load().Capacity != 40 {
			t.Errorf("Reload with an invalid setting (%s) returns error %v, and the capacity is %d, want 40", says, err, l.current.Load().Capacity)
		}
	}
}
