package guard_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// growingBan returns the rule "a", whose bans grow from an hour to a day.
func growingBan(t *testing.T) guard.Rule {
	t.Helper()
	r := bansAnswers(t, 2)
	r.Ban.Growth, r.Ban.Most, r.Ban.Forget = 3, day, 7*day
	return r
}

// TestBanGrows follows one client: each ban is three times as long as the one before, up to a day. The client is forgotten seven days after
// its last ban has ended, and at once when an operator lifts a ban.
func TestBanGrows(t *testing.T) {
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{growingBan(t)}})
	name := guard.KeyName{Rule: "a", Values: []string{"x"}}
	ban := func(want time.Duration, earlier int) {
		t.Helper()
		for range 2 {
			if !try(t, g, "x", 401) {
				t.Fatal("the client is banned too early")
			}
		}
		state, err := g.Peek(t.Context(), name)
		if err != nil || state.Ban == nil || state.Ban.Until.Sub(clock.Now().Time()) != want+time.Minute || state.EarlierBans != earlier {
			t.Fatalf("the ban is %+v, %v: want a length of %v and %d earlier bans", state, err, want, earlier)
		}
	}
	for i, want := range []time.Duration{time.Hour, 3 * time.Hour, 9 * time.Hour, day, day, day} {
		ban(want, min(i+1, 4))
		clock.Advance(want + time.Minute)
	}
	clock.Advance(7*day - time.Nanosecond)
	ban(day, 4)
	clock.Advance(8*day + time.Minute)
	ban(time.Hour, 1)
	clock.Advance(time.Hour + time.Minute)
	ban(3*time.Hour, 2)
	if was, err := g.Unban(t.Context(), name); err != nil || !was {
		t.Fatal(was, err)
	}
	ban(time.Hour, 1)
	bans, _ := g.Bans(clock.Now().Time())
	if lifted, err := g.Lift(t.Context(), bans[0].ID); err != nil || !lifted {
		t.Fatal(lifted, err)
	}
	ban(time.Hour, 1)
}

// growingTwin is the definition of a ban that grows, for one client.
type growingTwin struct {
	began, banned headgate.Instant // the first answer that counts, and the last answer before the last ban
	n             int64
	earlier       int
	length        time.Duration // of the last ban
}

// answer counts an answer that bans the client if it is the n-th, and reports whether the request was served.
func (w *growingTwin) answer(b *guard.Ban, now headgate.Instant, counts bool) (served bool) {
	end := w.began.Add(b.After.Per)
	if w.n >= b.After.Count {
		end = end.Add(w.length)
	}
	if w.n > 0 && now >= end {
		w.n = 0
	}
	if w.n >= b.After.Count {
		return false
	}
	if !counts {
		return true
	}
	if w.n++; w.n == 1 {
		w.began = now
	}
	if w.n == b.After.Count {
		if w.earlier > 0 && now >= w.banned.Add(b.After.Per+w.length+b.Forget) {
			w.earlier = 0
		}
		w.length = b.For
		for range w.earlier {
			w.length = min(w.length*time.Duration(b.Growth), b.Most)
		}
		w.earlier++
		w.banned = now
	}
	return true
}

// TestBanGrowsAsItsTwin compares two instances of one store with a slow definition, over random requests, answers and pauses.
func TestBanGrowsAsItsTwin(t *testing.T) {
	const seeds, steps = 60, 500
	grown := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := bansAnswers(t, 1+random.Int64N(3))
		r.Ban.For, r.Ban.Growth = time.Duration(1+random.Int64N(100))*time.Second, 2+random.Int64N(4)
		r.Ban.Most, r.Ban.Forget = r.Ban.For+time.Duration(1+random.Int64N(int64(time.Hour))), time.Duration(1+random.Int64N(int64(20*time.Minute)))
		c := guard.Config{Rules: []guard.Rule{r}}
		first, clock := newGuard(t, c)
		c.Store = first.Store()
		second, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		twins := map[string]*growingTwin{"x": {}, "y": {}}
		for step := range steps {
			clock.Advance(time.Duration(random.Int64N(int64(40 * time.Second))))
			if random.IntN(20) == 0 {
				clock.Advance(time.Duration(random.Int64N(int64(2 * (r.Ban.Most + r.Ban.Forget)))))
			}
			client, status := []string{"x", "y"}[random.IntN(2)], []int{200, 401, 403}[random.IntN(3)]
			want := twins[client].answer(&r.Ban, clock.Now(), status != 200)
			if got := try(t, []*guard.Guard{first, second}[random.IntN(2)], client, status); got != want {
				t.Fatalf("seed %d, step %d: served is %v, want %v after %d answers, with a ban of %v", seed, step, got, want,
					twins[client].n, twins[client].length)
			}
			grown = max(grown, twins[client].earlier)
		}
	}
	if grown < 5 {
		t.Errorf("no client had more than %d bans", grown)
	}
}

// TestGrowthOfASwitch: bans that a Switch counts apart have lengths of their own.
func TestGrowthOfASwitch(t *testing.T) {
	r := growingBan(t)
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	ban := func(want time.Duration) {
		t.Helper()
		try(t, g, "x", 401)
		try(t, g, "x", 401)
		bans, _ := g.Bans(clock.Now().Time())
		if len(bans) != 1 || bans[0].Until.Sub(clock.Now().Time()) != want+time.Minute {
			t.Fatalf("the bans are %+v, want one of %v", bans, want)
		}
		clock.Advance(want + time.Minute)
	}
	ban(time.Hour)
	ban(3 * time.Hour)
	shadow := r
	shadow.Mode, shadow.Switch = guard.Shadow, &guard.Switch{From: guard.Enforce}
	if err := g.Reload(guard.Config{Rules: []guard.Rule{shadow}, Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	ban(time.Hour)
	if err := g.Reload(guard.Config{Rules: []guard.Rule{r}, Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	ban(9 * time.Hour)
}

// TestLengths: the lengths of the bans of a key, and what cannot grow.
func TestLengths(t *testing.T) {
	b := guard.Ban{For: time.Hour}
	if got := b.Lengths(); !slices.Equal(got, []time.Duration{time.Hour}) {
		t.Errorf("without growth: %v", got)
	}
	b.Growth, b.Most = 4, 20*time.Hour
	if got := b.Lengths(); !slices.Equal(got, []time.Duration{time.Hour, 4 * time.Hour, 16 * time.Hour, 20 * time.Hour}) {
		t.Errorf("with growth: %v", got)
	}
	b.For, b.Growth, b.Most = time.Second, 2, 367*day
	if got := b.Lengths(); len(got) != 26 || got[25] != b.Most {
		t.Errorf("the longest growth has %d lengths", len(got))
	}
	for name, row := range map[string]struct {
		change func(r *guard.Rule)
		want   string
	}{
		"attempts":        {func(r *guard.Rule) { r.Count, r.Policies = nil, growingBan(t).Policies }, "set Count"},
		"no growth":       {func(r *guard.Rule) { r.Ban.Growth = 0 }, "without Growth"},
		"a shrinking":     {func(r *guard.Rule) { r.Ban.Growth = 1 }, "use 2 to 100"},
		"none is longer":  {func(r *guard.Rule) { r.Ban.Most = time.Hour }, "above For"},
		"never forgotten": {func(r *guard.Rule) { r.Ban.Forget = 0 }, "and a Forget"},
	} {
		r := growingBan(t)
		row.change(&r)
		store, _ := newGuard(t, guard.Config{})
		if _, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store.Store()}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
