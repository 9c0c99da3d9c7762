package report

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// sender has the headers of a request with a client name.
type sender struct{ client string }

func (s *sender) Lookup(string) (string, bool) { return s.client, true }

// closed returns a function that sends a request to a guard. The guard refuses all
// requests by two rules, and reports to r.
func closed(tb testing.TB, r *Report) func(path, client string) {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	key, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		tb.Fatal(err)
	}
	none := []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Per: time.Minute}}}
	c := guard.Config{Store: store, Rules: []guard.Rule{
		{Rule: rule.Rule{Name: "product", Match: rule.Match{Path: "/product"}, Key: []rule.Part{key}}, Policies: none},
		{Rule: rule.Rule{Name: "search", Match: rule.Match{Path: "/search"}, Key: []rule.Part{key}}, Policies: none},
	}}
	c.Observer = r.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	var a guard.Answer
	from, req := new(sender), headgate.Request{Method: "GET", Cost: 1}
	return func(path, client string) {
		from.client = client
		req.Path, req.Header = path, from
		if err := g.Decide(tb.Context(), &req, &a); err != nil {
			tb.Fatal(err)
		}
	}
}

func name(client string) string { return fmt.Sprintf("header:X-Client-Id=%q", client) }

func TestTopKeys(t *testing.T) {
	r := New(Config{Keys: KeysPlain})
	ask := closed(t, r)
	for range 3 {
		ask("/product", "a")
	}
	ask("/product", "b")
	ask("/search", "a")
	ask("/search", "a")
	for _, c := range []struct {
		rule string
		n    int
		want []TopKey
	}{
		{"", 10, []TopKey{{"product", name("a"), 3, 0}, {"search", name("a"), 2, 0}, {"product", name("b"), 1, 0}}},
		{"", 1, []TopKey{{"product", name("a"), 3, 0}}},
		{"search", 10, []TopKey{{"search", name("a"), 2, 0}}},
		{"none", 10, []TopKey{}},
	} {
		got, ok := r.TopKeys(c.rule, c.n)
		if fmt.Sprint(got.Keys) != fmt.Sprint(c.want) || !ok || got.Total != 6 {
			t.Errorf("%q, %d: %+v, want %v of 6", c.rule, c.n, got, c.want)
		}
	}
}

func TestTopKeysAreNamedAsConfigured(t *testing.T) {
	hashed := New(Config{KeysSecret: []byte("secret")})
	closed(t, hashed)("/product", "me")
	got, _ := hashed.TopKeys("", 1)
	// printf %s 'header:X-Client-Id=me' | openssl dgst -sha256 -hmac secret | cut -c-32
	if want := "header:X-Client-Id=8add3dcf25020bb916ae7942418b07a2"; len(got.Keys) != 1 || got.Keys[0].Key != want {
		t.Errorf("%+v, want %s", got, want)
	}
	again := New(Config{KeysSecret: []byte("secret")})
	closed(t, again)("/product", "me")
	if same, _ := again.TopKeys("", 1); same.Keys[0].Key != got.Keys[0].Key {
		t.Errorf("one secret gives two names of a key: %s and %s", same.Keys[0].Key, got.Keys[0].Key)
	}
	random := New(Config{})
	closed(t, random)("/product", "me")
	if other, _ := random.TopKeys("", 1); other.Keys[0].Key == got.Keys[0].Key {
		t.Error("another secret gives the same name")
	}
	off := New(Config{Keys: KeysOff})
	closed(t, off)("/product", "me")
	if _, ok := off.TopKeys("", 1); ok {
		t.Error("TopKeys names keys with KeysOff")
	}
}

// This test compares with an exact count. A listed count is never below the exact
// count, and at most its Error above it. Each key with more than 1/64 of the refusals
// of its shard is listed. The same is true for the sum of two periods.
func TestTopKeysAgainstExactCounts(t *testing.T) {
	for seed := range uint64(race.Fewer(5, 1)) {
		now := time.Unix(1_700_000_000, 0)
		r := New(Config{Keys: KeysPlain, Clock: func() time.Time { return now }})
		ask, exact := closed(t, r), map[string]uint64{}
		random := rand.New(rand.NewPCG(seed, 1))
		zipf := rand.NewZipf(random, 1.2, 1, 20_000)
		for i := range 30_000 {
			client := fmt.Sprint(zipf.Uint64())
			ask("/product", client)
			exact[name(client)]++
			if i == 17_000 {
				now = now.Add(topPeriod)
			}
		}
		got, _ := r.TopKeys("", topShards*topPlaces*2)
		listed := map[string]TopKey{}
		for _, k := range got.Keys {
			listed[k.Key] = k
			if n := exact[k.Key]; k.Refusals < n || k.Refusals-k.Error > n {
				t.Fatalf("seed %d: %s: got %d refusals (error %d), exact count %d", seed, k.Key, k.Refusals, k.Error, n)
			}
		}
		// A shard has about 1/16 of the keys, but the largest shard may have more refusals.
		for key, n := range exact {
			if _, found := listed[key]; !found && n > got.Total/topPlaces {
				t.Errorf("seed %d: %s has %d of %d refusals and is not listed", seed, key, n, got.Total)
			}
		}
		if got.Total != 30_000 || !got.Since.Equal(now.Add(-topPeriod)) {
			t.Errorf("seed %d: %d since %v", seed, got.Total, got.Since)
		}
	}
}

// Counts older than two periods are deleted, also when the clock steps back.
func TestTopKeysForget(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := New(Config{Keys: KeysPlain, Clock: func() time.Time { return now }})
	ask := closed(t, r)
	for _, c := range []struct {
		name  string
		step  time.Duration
		total uint64
	}{
		{"at once", 0, 1},
		{"a little later", time.Minute, 2},
		{"in the next period", topPeriod, 3},
		{"in the second next period, without the first two", topPeriod, 2},
		{"much later", 10 * topPeriod, 1},
		{"the clock steps back", -time.Hour, 1},
		{"the clock steps back by a little", -time.Second, 1},
	} {
		now = now.Add(c.step)
		ask("/product", "a")
		if got, _ := r.TopKeys("", 10); got.Total != c.total || len(got.Keys) != 1 || got.Keys[0].Refusals != c.total {
			t.Errorf("%s: %+v, want %d", c.name, got, c.total)
		}
	}
}

// A flood of new keys, which replace each other, allocates nothing.
func TestRefusalsAllocateNothing(t *testing.T) {
	r := New(Config{})
	ask := closed(t, r)
	clients := make([]string, 20_000)
	for i := range clients {
		clients[i] = fmt.Sprintf("client-%08d", i)
	}
	next := 0
	flood := func() {
		ask("/product", clients[next%len(clients)])
		next++
	}
	for range clients {
		flood()
	}
	if n := testing.AllocsPerRun(1000, flood); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkRefused measures refusals of one key, with and without TopKeys.
func BenchmarkRefused(b *testing.B) {
	for _, keys := range []Keys{KeysHash, KeysOff} {
		b.Run(keys.String(), func(b *testing.B) {
			ask := closed(b, New(Config{Keys: keys}))
			b.ReportAllocs()
			for b.Loop() {
				ask("/product", "a")
			}
		})
	}
}
