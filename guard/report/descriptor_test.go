package report

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// decider returns a function that decides one descriptor and reports the decision.
func decider(tb testing.TB, r *Report) func(req *headgate.Request, code string) {
	tb.Helper()
	g := shop(tb, r)
	requests, answers := make([]headgate.Request, 1), make([]guard.Answer, 1)
	return func(req *headgate.Request, code string) {
		requests[0] = *req
		g.DecideDescriptors(tb.Context(), requests, answers, false)
		if answers[0].Error != nil {
			tb.Fatal(answers[0].Error)
		}
		r.ObserveDescriptor(&requests[0], &answers[0], code)
	}
}

// shop returns a guard. The domain shop has a tree with a limit of one unit for each client, and a
// rule with the same limit decides other domains.
func shop(tb testing.TB, r *Report) *guard.Guard {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return 90 * headgate.Instant(time.Second) }})
	if err != nil {
		tb.Fatal(err)
	}
	key, err := rule.ParsePart("descriptor:client")
	if err != nil {
		tb.Fatal(err)
	}
	one := []headgate.Policy{guard.LeafPolicy(headgate.FixedWindow, headgate.Limit{Count: 1, Per: time.Hour})}
	c := guard.Config{
		Store: store,
		Rules: []guard.Rule{{
			Rule: rule.Rule{Name: "others", Match: rule.Match{Descriptors: map[string]string{"client": "*"}}, Key: []rule.Part{key}}, Policies: one,
		}},
		Domains: []guard.Domain{{Name: "shop", Descriptors: []guard.Descriptor{
			{Key: "client", Leaf: &guard.Leaf{Policies: one}},
			{Key: "path", Value: "/a*", ShareThreshold: true, Leaf: &guard.Leaf{Policies: one}},
			{Key: "free", Leaf: &guard.Leaf{Unlimited: true}},
		}}},
	}
	c.Observer = r.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// entries returns a request to a domain.
func entries(domain string, cost int64, texts ...string) *headgate.Request {
	req := &headgate.Request{Domain: domain, Cost: cost}
	for i := 0; i < len(texts); i += 2 {
		req.Descriptors = append(req.Descriptors, headgate.DescriptorEntry{Name: texts[i], Value: texts[i+1]})
	}
	return req
}

// TestDescriptorsInTheLog checks the lines of decisions by a tree, by a rule, and by a limit that was sent.
func TestDescriptorsInTheLog(t *testing.T) {
	out := new(logs.Text)
	r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), Decisions: All, Keys: KeysPlain})
	decide := decider(t, r)
	decide(entries("shop", 1, "client", "a"), "OK")
	decide(entries("shop", 5, "client", "a\n\""), "OVER_LIMIT")
	decide(entries("shop", 1, "free", "a"), "OK")      // A limit without an end is not logged.
	decide(entries("shop", 1, "unlimited", "a"), "OK") // No limit.
	decide(entries("shop", 1, "path", "/a/b"), "OK")   // The line has the value, not the wildcard.
	decide(entries("other", 1, "client", "a"), "")     // The guard reports decisions of rules.
	decide(entries("other", 1, "client", "a"), "")
	sent := entries("shop", 1, "x", "y")
	sent.Sent = headgate.Limit{Count: 0, Per: time.Hour}
	decide(sent, "OVER_LIMIT")
	back := entries("shop", 2, "client", "a")
	back.Kind = headgate.Refund
	decide(back, "OK")
	r.Close()
	var got []string
	for _, line := range linesOf(t, out) {
		got = append(got, fmt.Sprint(line["verdict"], " ", line["domain"], ": ", line["rule"], " ", line["descriptors"], ", ", line["key"], "; ", line["hits"], " ", line["code"]))
	}
	want := []string{
		`allow shop: shop.client descriptor:client="a", <nil>; 1 OK`,
		`deny shop: shop.client descriptor:client="a\n\"", <nil>; 5 OVER_LIMIT`,
		`allow shop: shop.path_/a* descriptor:path="/a/b", <nil>; 1 OK`,
		`allow other: others descriptor:client="a", descriptor:client="a"; 1 OK`,
		`deny other: others descriptor:client="a", descriptor:client="a"; 1 OVER_LIMIT`,
		`deny shop: shop descriptor:x="y", <nil>; 1 OVER_LIMIT`,
		`allow shop: shop.client descriptor:client="a", <nil>; -2 OK`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDescriptorsInTheFormOfKeys checks the forms of log.keys.
func TestDescriptorsInTheFormOfKeys(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	hashed := string(rule.HashedKeyNames(secret).AppendEntry(nil, "client", "a"))
	for keys, want := range map[Keys]any{KeysPlain: `descriptor:client="a"`, KeysHash: hashed, KeysOff: nil} {
		out := new(logs.Text)
		r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), Decisions: All, Keys: keys, KeysSecret: secret})
		decider(t, r)(entries("shop", 1, "client", "a"), "OK")
		r.Close()
		if got := linesOf(t, out); len(got) != 1 || got[0]["descriptors"] != want || got[0]["domain"] != "shop" {
			t.Errorf("%v: got %v, want %v", keys, got, want)
		}
	}
}

// hostile returns a descriptor with as many entries as a client may send.
func hostile(domain string) *headgate.Request {
	req := entries(domain, 1, "client", "a")
	for range 31 {
		req.Descriptors = append(req.Descriptors, headgate.DescriptorEntry{Name: strings.Repeat("\xff", 100), Value: strings.Repeat("\x00", 128)})
	}
	return req
}

// TestLinesAreBounded checks the length of a line, and the memory of all lines while the log blocks.
func TestLinesAreBounded(t *testing.T) {
	out := new(logs.Text)
	r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), Keys: KeysPlain})
	decide, req := decider(t, r), hostile(strings.Repeat("d", 4096))
	req.Descriptors[31].Value = strings.Repeat("v", 4096)
	decide(req, "")
	decide(req, "")
	r.Close()
	if got := linesOf(t, out); len(got) != 1 || len(fmt.Sprint(got)) > 4096 || !strings.HasSuffix(fmt.Sprint(got[0]["domain"]), "...(4096 bytes)") {
		t.Errorf("got %d lines, %d bytes: %.300v", len(got), len(fmt.Sprint(got)), got)
	}
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r := New(Config{Log: slog.New(slog.NewJSONHandler(blocking(free), nil)), Decisions: All, Keys: KeysPlain})
		decide := decider(t, r)
		for range 9000 {
			decide(req, "")
		}
		if n := r.logged().lines.texts.Load(); n > mostTexts || n < mostTexts/2 || r.logged().lines.suppressed.Load() == 0 {
			t.Errorf("%d bytes of texts are queued, want at most %d", n, mostTexts)
		}
		close(free)
		r.Close()
		if n := r.logged().lines.texts.Load(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	})
}

// TestUnloggedDescriptorsAllocateNothing checks the path of most requests: decisions that are not
// logged, and refusals beyond the sample.
func TestUnloggedDescriptorsAllocateNothing(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		cost   int64
	}{
		"none": {Config{Decisions: None}, 9}, "allowed": {Config{}, 1},
		"beyond the sample": {Config{PerSecond: 1, Clock: func() time.Time { return time.Unix(9, 0) }}, 9},
	} {
		row.config.Log = slog.New(slog.DiscardHandler)
		r := New(row.config)
		requests, answers := []headgate.Request{*entries("shop", row.cost, "client", "a")}, make([]guard.Answer, 1)
		shop(t, r).DecideDescriptors(t.Context(), requests, answers, false)
		observe := func() { r.ObserveDescriptor(&requests[0], &answers[0], "OVER_LIMIT") }
		observe() // The sample, and the place of the key in the list of refused keys.
		if r.logged().lines != nil {
			r.logged().lines.drain() // The line of the sample is not part of the measurement.
		}
		if n := testing.AllocsPerRun(200, observe); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
		r.Close()
	}
}

// TestTopDescriptors checks that descriptors of a tree are listed by their keys.
func TestTopDescriptors(t *testing.T) {
	r := New(Config{Keys: KeysPlain})
	decide := decider(t, r)
	for range 4 {
		decide(entries("shop", 1, "client", "a"), "OVER_LIMIT")
	}
	decide(entries("shop", 9, "path", "/a/1"), "OVER_LIMIT")
	decide(entries("shop", 9, "path", "/a/2"), "OVER_LIMIT")
	decide(entries("other", 9, "client", "b"), "")
	got, _ := r.TopKeys("", 10)
	want := []TopKey{
		{"shop.client", `descriptor:client="a"`, 3, 0}, {"shop.path_/a*", `descriptor:path=all "/a*"`, 2, 0}, {"others", `descriptor:client="b"`, 1, 0},
	}
	if fmt.Sprint(got.Keys) != fmt.Sprint(want) || got.Total != 6 {
		t.Errorf("got %+v, want %v of 6", got, want)
	}
	if got, _ := r.TopKeys("shop.client", 10); len(got.Keys) != 1 || got.Keys[0] != want[0] {
		t.Errorf("of one limit: got %+v", got)
	}
}

// TestTopDescriptorsAreBounded checks that long keys of descriptors take no more than their places.
func TestTopDescriptorsAreBounded(t *testing.T) {
	r := New(Config{Keys: KeysPlain})
	decide := decider(t, r)
	for i := range 1500 {
		req := hostile("shop")
		req.Sent = headgate.Limit{Per: time.Hour}
		req.Descriptors[1].Value = fmt.Sprint(i)
		decide(req, "OVER_LIMIT")
	}
	for i := range r.logged().top.shards {
		for _, p := range r.logged().top.shards[i].now.places {
			if cap(p.key) > 2*topKeyBytes {
				t.Fatalf("a place has a key of %d bytes", cap(p.key))
			}
		}
	}
	got, _ := r.TopKeys("", 1)
	if len(got.Keys) != 1 || !strings.HasPrefix(got.Keys[0].Key, `descriptor:client="a" `) || !strings.HasSuffix(got.Keys[0].Key, "...") {
		t.Errorf("got %.200v", got.Keys)
	}
}

// TestQueueOfAllFitsItsBound checks the memory that headgate check states for the queue of All: package
// config has the number.
func TestQueueOfAllFitsItsBound(t *testing.T) {
	if race.On || !alone.Here(t) { // The race detector takes memory of its own.
		return
	}
	const bound = 32 << 20
	free, r := make(chan struct{}), (*Report)(nil)
	used := allocs.Kept(func() {
		r = New(Config{Log: slog.New(slog.NewJSONHandler(blocking(free), nil)), Decisions: All, Keys: KeysPlain})
		decide := decider(t, r)
		req := entries("shop", 1, "client", strings.Repeat("a", 128), "x", strings.Repeat("b", 70)) // 256 bytes with the domain.
		req.Sent = headgate.Limit{Per: time.Hour}
		for range queueOfAll + 100 {
			decide(req, "OVER_LIMIT")
		}
	})
	if n, texts := len(r.logged().lines.queue), r.logged().lines.texts.Load(); n < queueOfAll*9/10 || texts < mostTexts*9/10 || used > bound {
		t.Errorf("%d lines with %d bytes of texts take %d bytes, want at most %d", n, texts, used, bound)
	}
	close(free)
	r.Close()
}
