package refusals

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/race"
)

// header has the fields of a request.
type header map[string]string

func (h header) Lookup(name string) (string, bool) {
	value, ok := h[name]
	return value, ok
}

// kept is a component whose guard refuses.
type kept struct {
	*Component

	guard *guard.Guard
	now   time.Time
	mu    sync.Mutex
}

const refusing = `rules:
  - {name: none, match: {path: "/none/*"}, key: ["header:X-Client-Id"], limits: [0/s]}
  - {name: shadow, match: {path: "/shadow/*"}, key: [ip], limits: [0/s], mode: shadow}
  - {name: many, match: {path: "/many/*"}, key: [ip], limits: [1000000000/s]}
`

func newKept(tb testing.TB, text string, keys config.LogKeys) *kept {
	tb.Helper()
	described := guards.Config(tb, text, nil)
	settings := &config.Config{Log: config.Log{Keys: keys}}
	form, _ := report.ParseKeys(string(keys))
	counts := report.New(report.Config{Keys: form})
	tb.Cleanup(counts.Close)
	described.Observer = counts.FollowConfig(&described)
	g, err := guard.New(described)
	if err != nil {
		tb.Fatal(err)
	}
	k := &kept{guard: g, now: time.Unix(1_000_000, 0)}
	k.Component = New(slog.New(slog.DiscardHandler), func() string { return "hg-1" }, func() *config.Config { return settings }, counts)
	k.ring.clock = func() time.Time {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.now
	}
	return k
}

// refuse decides a request.
func (k *kept) refuse(tb testing.TB, req *headgate.Request) *guard.Answer {
	tb.Helper()
	a := new(guard.Answer)
	if err := k.guard.Decide(tb.Context(), req, a); err != nil {
		tb.Fatal(err)
	}
	return a
}

// list calls the component.
func (k *kept) list(tb testing.TB, query url.Values) (admin.Refusals, int) {
	tb.Helper()
	w := httptest.NewRecorder()
	k.Calls()[0].Handler(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/api/v1/refusals?"+query.Encode(), nil))
	var all admin.Refusals
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
			tb.Fatal(err)
		}
	}
	return all, w.Code
}

func TestRecordSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(record{}); size != 256 {
		t.Errorf("a record has %d bytes, want 256", size)
	}
}

// TestRefusalsAreFound: by the id of the request, by that of the decision with and without an instance, by rule and by key.
func TestRefusalsAreFound(t *testing.T) {
	t.Parallel()
	k := newKept(t, refusing, "plain")
	long := strings.Repeat("i", 100)
	a := k.refuse(t, &headgate.Request{Method: "GET", Path: "/none/a", Authority: "example.com", ID: "one", Header: header{"X-Client-Id": "acme"}})
	k.refuse(t, &headgate.Request{Method: "GET", Path: "/none/" + strings.Repeat("p", 99), ID: long + "2", Header: header{"X-Client-Id": "\u202e<b>"}})
	k.refuse(t, &headgate.Request{Method: "GET", Path: "/shadow/a", ID: long + "3"})
	k.refuse(t, &headgate.Request{Method: "GET", Path: "/many/a", ID: "passes"})
	id := string(a.DecisionID().AppendTo(nil, "hg-1"))
	for name, c := range map[string]struct {
		query url.Values
		want  string
	}{
		"all":           {url.Values{}, "shadow, none, none"},
		"request":       {url.Values{"request_id": {"one"}}, "none"},
		"decision":      {url.Values{"request_id": {id}}, "none"},
		"digits":        {url.Values{"request_id": {id[len("hg-1/"):]}}, "none"},
		"long id":       {url.Values{"request_id": {long + "3"}}, "shadow"},
		"no id":         {url.Values{"request_id": {long}}, ""},
		"passed":        {url.Values{"request_id": {"passes"}}, ""},
		"rule":          {url.Values{"rule": {"none"}}, "none, none"},
		"key":           {url.Values{"key": {"acme"}}, "none"},
		"rule and key":  {url.Values{"rule": {"shadow"}, "key": {"acme"}}, ""},
		"rule and more": {url.Values{"rule": {"none"}, "limit": {"1"}}, "none"},
	} {
		all, _ := k.list(t, c.query)
		var names []string
		for _, r := range all.Refusals {
			names = append(names, r.Rule)
		}
		if got := strings.Join(names, ", "); got != c.want || all.Instance != "hg-1" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	all, _ := k.list(t, url.Values{})
	first, second := all.Refusals[2], all.Refusals[1]
	if first.Key != `header:X-Client-Id="acme"` || first.RequestID != "one" || first.Host != "example.com" || first.Path != "/none/a" ||
		first.Method != http.MethodGet || first.Reason != "never" || first.Shadow || !all.Refusals[0].Shadow || "hg-1/"+first.Decision != id {
		t.Errorf("the first refusal is %+v", first)
	}
	if !strings.HasSuffix(second.Path, "ppp...") || !strings.HasSuffix(second.RequestID, "iii...") || strings.Contains(second.Key, "\u202e") {
		t.Errorf("the second refusal is %+v", second)
	}
	for _, wrong := range []url.Values{
		{"limit": {"0"}}, {"limit": {"1001"}}, {"bogus": {"1"}}, {"key": {strings.Repeat("k", maxSought+1)}}, {"rule": {""}},
	} {
		if _, code := k.list(t, wrong); code != http.StatusBadRequest {
			t.Errorf("%v gives %d, want 400", wrong, code)
		}
	}
}

// TestKeysOfRefusals: log.keys decides what a caller sees, and off keeps nothing of keys, also of those before.
func TestKeysOfRefusals(t *testing.T) {
	t.Parallel()
	request := &headgate.Request{Method: "GET", Path: "/none/a", Header: header{"X-Client-Id": "acme"}}
	for keys, plain := range map[config.LogKeys]bool{"plain": true, "hash": false, config.KeysByReader: false, "off": false} {
		k := newKept(t, refusing, keys)
		k.refuse(t, request)
		all, _ := k.list(t, url.Values{})
		if len(all.Refusals) != 1 || strings.Contains(all.Refusals[0].Key, "acme") != plain || (all.Refusals[0].Key == "") != (keys == "off") {
			t.Errorf("%s: %+v", keys, all)
		}
	}
	k := newKept(t, refusing, "plain")
	k.refuse(t, request)
	change, err := k.Reload(&config.Config{Log: config.Log{Keys: "off"}})
	if err != nil {
		t.Fatal(err)
	}
	change.Commit()
	if text := string(k.ring.all[0].text[:]); k.ring.all[0].lengths[textKey] != 0 || strings.Contains(text, "acme") {
		t.Errorf("after log.keys off the ring has %q", text)
	}
}

// TestFloodIsSampled: a second keeps 200 refusals and counts the others. The ring has the last 4,096.
func TestFloodIsSampled(t *testing.T) {
	t.Parallel()
	k := newKept(t, refusing, "plain")
	const seconds, flood = 25, 1000
	for second := range seconds {
		k.mu.Lock()
		k.now = time.Unix(int64(2_000_000+second), 0)
		k.mu.Unlock()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range flood / 4 {
					k.refuse(t, &headgate.Request{Method: "GET", Path: "/none/a", ID: fmt.Sprint("s", second), Header: header{}})
				}
			})
		}
		all.Wait()
	}
	all, _ := k.list(t, url.Values{"limit": {"1000"}})
	skipped := uint64(seconds * (flood - perSecond))
	if len(all.Refusals) != maxList || all.Skipped != skipped || all.Since.Unix() != 2_000_000+seconds-21 {
		t.Errorf("the ring has %d refusals since %v, and skipped %d, want %d", len(all.Refusals), all.Since, all.Skipped, skipped)
	}
	for i, r := range all.Refusals {
		if want := fmt.Sprint("s", seconds-1-i/perSecond); r.RequestID != want {
			t.Fatalf("refusal %d is of %s, want %s", i, r.RequestID, want)
		}
	}
}

// TestRefusalAllocatesNothing: neither one that is kept, nor one of a flood.
func TestRefusalAllocatesNothing(t *testing.T) {
	k := newKept(t, refusing, "plain")
	req := &headgate.Request{Method: "GET", Path: "/none/a", ID: "one", Authority: "example.com", Header: header{"X-Client-Id": "acme"}}
	a := k.refuse(t, req)
	r := a.Closest()
	if n := testing.AllocsPerRun(100, func() { k.ring.observe(req, a, r) }); n > 0 && !race.On { // The race detector allocates.
		t.Errorf("a kept refusal allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { k.ring.observe(req, a, r) }); n > 0 && !race.On {
		t.Errorf("a refusal of a flood allocates %v times", n)
	}
}

// BenchmarkObserve measures what a refusal costs more: kept, and in a flood.
func BenchmarkObserve(b *testing.B) {
	k := newKept(b, refusing, "plain")
	req := &headgate.Request{Method: "GET", Path: "/none/a", ID: "one", Authority: "example.com", Header: header{"X-Client-Id": "acme"}}
	a := k.refuse(b, req)
	k.ring.clock = time.Now
	b.Run("flood", func(b *testing.B) {
		for b.Loop() {
			k.ring.observe(req, a, a.Closest())
		}
	})
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now().UnixNano()
		}
	})
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			k.ring.kept.Store(0)
			k.ring.observe(req, a, a.Closest())
		}
	})
}
