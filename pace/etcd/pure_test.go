package etcd

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

const second = headgate.Instant(time.Second)

func TestEdge(t *testing.T) {
	for _, c := range []struct {
		t, want headgate.Instant
		per     time.Duration
	}{
		{0, 0, time.Second},
		{-5, 0, time.Second},
		{1, second, time.Second},
		{second, second, time.Second},
		{second + 1, 2 * second, time.Second},
		{second, 2 * second, 2 * time.Second},
		{1_700_000_000*second + 1, 1_700_000_000*second + 1_000_000, time.Millisecond},
	} {
		if got := edge(c.t, c.per); got != c.want {
			t.Errorf("edge(%d, %v) = %d: want %d", c.t, c.per, got, c.want)
		}
	}
}

func TestCommonLength(t *testing.T) {
	for _, c := range []struct {
		a, b, want time.Duration // 0 stands for an error
	}{
		{time.Second, time.Second, time.Second},
		{time.Second, time.Minute, time.Minute},
		{time.Minute, time.Second, time.Minute},
		{2 * time.Second, 3 * time.Second, 6 * time.Second},
		{1500 * time.Millisecond, time.Second, 3 * time.Second},
		{7 * time.Second, time.Minute, 7 * time.Minute},
		{24 * time.Hour, time.Second, 24 * time.Hour},
		{time.Second, schedule.MaxPer, schedule.MaxPer},
		{24 * time.Hour, 7 * time.Second, 0},
		{time.Second, 999_983 * time.Microsecond, 0},
		{schedule.MaxPer, schedule.MaxPer - time.Microsecond, 0},
	} {
		for _, c := range [][3]time.Duration{{c.a, c.b, c.want}, {c.b, c.a, c.want}} {
			got, err := commonLength(c[0], c[1])
			if got != c[2] || (err != nil) != (c[2] == 0) {
				t.Errorf("windows of %v and %v meet every %v, %v: want %v", c[0], c[1], got, err, c[2])
			}
			if err != nil && !strings.Contains(err.Error(), "choose a length") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	}
}

func TestKeepOrder(t *testing.T) {
	for _, c := range []struct{ old, living, want string }{
		{"", "", ""},
		{"", "a", "a"},
		{"abc", "cba", "abc"},
		{"abc", "abcd", "abcd"}, // A new instance is appended.
		{"abc", "bc", "cb"},     // The last instance takes the index of one that has left.
		{"abc", "ab", "ab"},
		{"abcd", "d", "d"},
		{"abcd", "cd", "dc"},
		{"abc", "acx", "axc"},    // A new instance takes the index of one that has left.
		{"abc", "cxyz", "xycz"},  // Further new instances are appended, in the order of the list.
		{"abcdef", "be", "eb"},   // The order of the free indexes does not matter.
		{"abcdef", "cf", "fc"},   //
		{"abc", "", ""},          //
		{"abc", "xx", "x"},       // A repeated name counts once.
		{"abcd", "abxd", "abxd"}, //
	} {
		got := strings.Join(keepOrder(strings.Split(c.old, "")[:len(c.old)], strings.Split(c.living, "")[:len(c.living)]), "")
		if got != c.want {
			t.Errorf("after %q, of %q: %q: want %q", c.old, c.living, got, c.want)
		}
	}
}

// TestKeepOrderKeeps: each live instance is in the order once. A remaining instance keeps its
// index if the index still exists.
func TestKeepOrderKeeps(t *testing.T) {
	letters := strings.Split("abcdefghijkl", "")
	for range 5000 {
		rand.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
		old := slices.Clone(letters[:rand.IntN(10)])
		rand.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
		living := slices.Clone(letters[:rand.IntN(10)])
		got := keepOrder(old, living)
		sorted, want := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(living))
		if !slices.Equal(sorted, want) {
			t.Fatalf("after %v, of %v: %v", old, living, got)
		}
		for i, id := range old {
			if i < len(got) && slices.Contains(living, id) && got[i] != id {
				t.Fatalf("after %v, of %v: %v: %s has lost its index", old, living, got, id)
			}
		}
	}
}

func TestValidUntil(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		story       string
		onLoss      OnLoss
		sent, lease time.Duration
		want        time.Duration
	}{
		{"the read counts", Stop, -1, 10, 1},
		{"the lease counts", Stop, 0, 1, 1},
		{"an old read is over", Stop, -5, 10, -3},
		{"held", Hold, -1, -20, 99},
	} {
		got := validUntil(c.onLoss, now.Add(c.sent), now.Add(c.lease), 2, 100)
		if !got.Equal(now.Add(c.want)) {
			t.Errorf("%s: %v from now: want %v", c.story, got.Sub(now), c.want)
		}
	}
}

func TestLimitRecords(t *testing.T) {
	for value, want := range map[string]Limit{
		`{"limit":50000,"per":"1s","balance":"even"}`:  {50000, time.Second, Even},
		`{"limit":0,"per":"1h0m0s"}`:                   {0, time.Hour, Even},
		`{ "per":"1ms","balance":"demand","limit":1 }`: {1, time.Millisecond, retired},
	} {
		got, err := parseLimit([]byte(value))
		if got != want || err != nil {
			t.Errorf("%s gives %+v, %v: want %+v", value, got, err, want)
		}
		if again, err := parseLimit([]byte(got.encode())); again != want || err != nil {
			t.Errorf("%s gives %+v, %v", got.encode(), again, err)
		}
	}
	for _, value := range []string{
		``, `{}`, `null`, `[]`, `7`, `NaN`, `{"limit":NaN,"per":"1s"}`, `{"limit":1e3,"per":"1s"} x`,
		`{"per":"1s"}`, `{"limit":5}`, `{"limit":5,"per":1}`, `{"limit":5,"per":"soon"}`, `{"limit":5,"per":"-1s"}`,
		`{"limit":-1,"per":"1s"}`, `{"limit":1.5,"per":"1s"}`, `{"limit":99999999999999,"per":"1s"}`,
		`{"limit":99999999999999999999999,"per":"1s"}`, `{"limit":5,"per":"1us"}`, `{"limit":5,"per":"9000h"}`,
		`{"limit":5,"per":"1.0000001s"}`, `{"limit":5,"per":"1s","balance":"most"}`, `{"limit":5,"per":"1s","burst":9}`,
		`{"limit":5,"per":"1s"}{"limit":6,"per":"1s"}`, strings.Repeat(" ", maxRecord) + `{"limit":5,"per":"1s"}`,
	} {
		if got, err := parseLimit([]byte(value)); !errors.Is(err, errRecord) {
			t.Errorf("%.60s gives %+v, %v: want none", value, got, err)
		}
	}
}

func TestPlanRecords(t *testing.T) {
	turn := turns(10, 2)
	for _, p := range []plan{
		{limit: 10, per: time.Second, members: []string{"a"}, from: 5 * second, limitRevision: 3},
		{limit: 0, per: time.Millisecond, members: []string{"a", "b-1.x:y_Z"}},
		{limit: 10, per: time.Second, members: []string{"a", "b"}, units: []int64{10 * turn, 0}},
	} {
		got, err := parsePlan([]byte(p.encode()))
		if err != nil || got.encode() != p.encode() || got.from != p.from {
			t.Errorf("%s comes back as %+v, %v", p.encode(), got, err)
			continue
		}
		for i := range p.members {
			if _, err := got.part(i); err != nil {
				t.Errorf("%s has no part %d: %v", p.encode(), i, err)
			}
		}
	}
	good := `{"limit":10,"per":"1s","members":["a","b"],"units":[0,` + "%" + `],"from_us":0,"limit_revision":1}`
	many := `["` + strings.Repeat(`a","`, 10) + `a"]`
	for _, value := range []string{
		``, `{}`, `{"limit":10,"per":"1s"}`, strings.Replace(good, "%", "1", 1), strings.Replace(good, "%", "-1", 1),
		strings.Replace(good, "%", "9223372036854775807", 1), strings.Replace(good, "%", "0,0", 1),
		`{"limit":10,"per":"1s","members":[],"from_us":0,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a",""],"from_us":0,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a/b"],"from_us":0,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":` + many + `,"from_us":0,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a"],"from_us":1,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a"],"from_us":-1000000,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a"],"from_us":9223372036854775807,"limit_revision":1}`,
		`{"limit":10,"per":"1s","members":["a"],"from_us":0,"limit_revision":1,"leader":"a"}`,
		`{"per":"1s","members":["a"],"from_us":0,"limit_revision":1}`,
	} {
		if got, err := parsePlan([]byte(value)); !errors.Is(err, errRecord) || got != nil {
			t.Errorf("%.100s gives %+v, %v: want none", value, got, err)
		}
	}
	if _, err := parsePlan([]byte(strings.Replace(good, "%", strconv.FormatInt(10*turn, 10), 1))); err != nil {
		t.Errorf("the valid value is refused: %v", err)
	}
	ids := make([]string, maxMembers+1)
	for i := range ids {
		ids[i] = strings.Repeat("i", i%maxName+1) + string(rune('a'+i%26))
	}
	if err := checkMembers(ids); !errors.Is(err, errRecord) {
		t.Errorf("%d members: %v", len(ids), err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"limit":50000,"per":"1s","balance":"even"}`))
	f.Add([]byte(`{"limit":10,"per":"1s","members":["a","b"],"units":[1,639],"from_us":0,"limit_revision":1}`))
	f.Add([]byte(`{"at_us":1,"demand":2,"bound_us":2000000}`))
	f.Add([]byte(`{"until_us":1,"percent":2,"reason":"\u0000x","by":"a"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if l, err := parseLimit(value); err == nil {
			if again, err := parseLimit([]byte(l.encode())); err != nil || again != l {
				t.Errorf("%+v is decoded as %+v, %v", l, again, err)
			}
		}
		if p, err := parsePlan(value); err == nil {
			for i := range p.members {
				if _, err := p.part(i); err != nil {
					t.Errorf("%s: %v", p.encode(), err)
				}
			}
		}
		if r, err := parseReport(value); err == nil && (r.demand < 0 || r.bound < 0 || r.at < 0) {
			t.Errorf("%+v", r)
		}
		if b, err := parseBrake(value); err == nil && (b.Percent < 0 || b.Percent > 100 || len(b.Reason) > maxReason) {
			t.Errorf("%+v", b)
		}
	})
}

func TestStronger(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration, percent int) BrakeInfo { return BrakeInfo{Until: now.Add(d), Percent: percent} }
	for _, c := range []struct {
		b, than BrakeInfo
		want    bool
	}{
		{at(1, 10), at(2, 20), true},
		{at(3, 20), at(2, 10), false},
		{at(3, 10), at(2, 10), true},
		{at(2, 10), at(2, 10), false},
		{at(1, 90), at(0, 0), true}, // The other brake has ended.
	} {
		if got := c.b.stronger(&c.than, now); got != c.want {
			t.Errorf("%+v is stronger than %+v: %v", c.b, c.than, got)
		}
	}
	if b := at(1, 90); !b.stronger(nil, now) {
		t.Error("a brake is not stronger than none")
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"429 Retry-After": "429 Retry-After", "a\x00\n\x1b[31mb\x7f": "a[31mb", "\xff\xfeü": "ü",
		strings.Repeat("ü", 150): strings.Repeat("ü", 100),
	} {
		if got := clean(text); got != want {
			t.Errorf("%q becomes %q: want %q", text, got, want)
		}
	}
}

func TestOffsets(t *testing.T) {
	var o offsets
	if _, instances := o.median(); instances != 0 {
		t.Errorf("of %d: want no instance", instances)
	}
	for _, d := range []time.Duration{90, 30, 50, 40} {
		o.add("a", d)
	}
	if d, instances := o.median(); d != 30 || instances != 1 {
		t.Errorf("%d of %d: want the least, 30", d, instances)
	}
	for range maxSamples {
		o.add("a", 100) // The clocks have moved apart, so older differences are dropped.
	}
	o.add("b", -20)
	if d, instances := o.median(); d != 40 || instances != 2 {
		t.Errorf("%d of %d: want 40, between 100 and -20", d, instances)
	}
	o.add("c", 1000)
	if d, _ := o.median(); d != 100 {
		t.Errorf("%d: want 100, the middle", d)
	}
	o.remove("c")
	if _, instances := o.median(); instances != 2 {
		t.Errorf("of %d: want 2", instances)
	}
}

// TestFrom: the edge is at least a bound after the proposal and not before the edge of the
// previous plan. It is an edge of both lengths of windows. A plan that was deleted has no
// influence.
func TestFrom(t *testing.T) {
	b := 2 * time.Second
	old := &plan{per: 2 * time.Second, from: 100 * second}
	for _, c := range []struct {
		story   string
		good    *plan
		deleted bool
		per     time.Duration
		sent    headgate.Instant
		want    headgate.Instant
	}{
		{"the first", nil, true, time.Second, 50*second + 1, 53 * second},
		{"at an edge", nil, true, time.Second, 50 * second, 52 * second},
		{"the same windows", old, false, 2 * time.Second, 200*second + 1, 204 * second},
		{"not before the last", old, false, 2 * time.Second, 50 * second, 100 * second},
		{"an edge of both", old, false, 3 * time.Second, 200 * second, 204 * second},
		{"and not before the last", old, false, 3 * time.Second, 50 * second, 102 * second},
		{"the last is deleted", old, true, 2 * time.Second, 50 * second, 52 * second},
	} {
		v := view{good: c.good}
		if !c.deleted {
			v.plan.mark.mod = 7
		}
		if got := v.from(&plan{per: c.per}, c.sent, b); got != c.want {
			t.Errorf("%s: %v: want %v", c.story, got.Time(), c.want.Time())
		}
	}
}

// TestProposing: instances with a later turn wait longer, and plans keep a distance. Only a few
// plans wait for their edges. For long windows, the proposal waits until the edge is near.
func TestProposing(t *testing.T) {
	const b = 2 * time.Second
	now := moment{mono: time.Now(), wall: 1000 * second}
	soon := now.wall.Add(b)
	for range 100 {
		var p proposing
		p.wanted(0, 0, now.mono)
		if wait := p.wait(soon, b, now); wait < settling || wait > 2*settling {
			t.Fatalf("the first waits for %v", wait)
		}
		p.wanted(50, 0, now.mono) // The time of the first call counts.
		if wait := p.wait(soon, b, now); wait > 2*settling {
			t.Fatalf("the first waits for %v", wait)
		}
		p = proposing{}
		p.wanted(10, b, now.mono)
		if wait := p.wait(soon, b, now); wait < settling+10*turnEvery+b || wait > 2*(settling+10*turnEvery)+b {
			t.Fatalf("the tenth waits for %v", wait)
		}
	}
	p := proposing{last: now.mono.Add(-100 * time.Millisecond)}
	p.wanted(0, 0, now.mono)
	if wait := p.wait(soon, b, now); wait != b/4-100*time.Millisecond {
		t.Errorf("after another plan: %v", wait)
	}
	p = proposing{}
	p.wanted(0, 0, now.mono)
	if wait := p.wait(now.wall.Add(time.Hour), b, now); wait != time.Hour-2*b {
		t.Errorf("for a window of an hour: %v", wait)
	}
	p = proposing{}
	for i := range maxPending + 2 {
		p.saw(now.wall.Add(time.Duration(i)*time.Second), now.mono.Add(-time.Hour))
	}
	p.wanted(0, 0, now.mono.Add(-time.Hour))
	if wait := p.wait(soon, b, now); wait != 2*time.Second+1 || len(p.pending) != maxPending {
		t.Errorf("with %d that wait: %v", len(p.pending), wait)
	}
	p.deleted()
	if wait := p.wait(soon, b, now); wait > 0 {
		t.Errorf("when they are deleted: %v", wait)
	}
}

func TestConfig(t *testing.T) {
	_, err := New(Config{})
	if err == nil || !strings.Contains(err.Error(), "clientv3.New") {
		t.Errorf("no client: %v", err)
	}
	for _, x := range []struct {
		want   string
		change func(*Config)
	}{
		{"Provider", func(c *Config) { c.Provider = "" }},
		{"Provider", func(c *Config) { c.Provider = "a/b" }},
		{"ID", func(c *Config) { c.ID = strings.Repeat("x", 129) }},
		{"prefix", func(c *Config) { c.Prefix = "/headgate" }},
		{"TTL", func(c *Config) { c.TTL = time.Millisecond }},
		{"Propagation", func(c *Config) { c.Propagation = time.Hour }},
		{"HoldFor", func(c *Config) { c.HoldFor = -time.Hour }},
		{"OnLoss", func(c *Config) { c.OnLoss = 7 }},
	} {
		c := Config{Client: closedClient(t), Provider: provider}
		if _, err := New(c); err != nil {
			t.Fatal(err)
		}
		x.change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%s: %v", x.want, err)
		}
	}
	c, err := Config{Client: closedClient(t), Provider: provider}.withDefaults()
	if err != nil || c.TTL != 6*time.Second || c.Propagation != 2*time.Second || c.HoldFor != time.Hour || len(c.ID) < 20 || c.Prefix != DefaultPrefix {
		t.Errorf("%+v, %v", c, err)
	}
	if Hold.String() != "hold" || Stop.String() != "stop" {
		t.Errorf("%v, %v", Hold, Stop)
	}
}
