package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sourced is a configuration of a proxy whose plans and customers are in a source.
const sourced = `version: 1
max_memory: 16MiB
source: {http: {url: "SOURCE", interval: 1s}, cache: CACHE}
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls, cost: "header:X-Cost"}
default_plan: free
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// documents serves one document as a source of HTTP does. The empty document is a server that is broken.
type documents struct {
	*httptest.Server

	text atomic.Pointer[string]
}

func serveDocument(t *testing.T, text string) *documents {
	t.Helper()
	d := &documents{}
	d.text.Store(&text)
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := *d.text.Load()
		etag := strconv.Quote(fmt.Sprint(len(text), text[max(0, len(text)-40):]))
		switch {
		case text == "":
			w.WriteHeader(http.StatusBadGateway)
		case r.Header.Get("If-None-Match") == etag:
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", etag)
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *documents) set(text string) { d.text.Store(&text) }

// sourcedBy gives the configuration with a source and a cache.
func sourcedBy(url, cache string) string {
	return strings.NewReplacer("SOURCE", url, "CACHE", cache).Replace(sourced)
}

// allowed counts the requests of a customer that pass, of n.
func allowed(t *testing.T, i *instance, customer string, n int) int {
	t.Helper()
	passed := 0
	for range n {
		if status, _, _ := spend(t, i, customer, 1); status == http.StatusOK {
			passed++
		}
	}
	return passed
}

const freePlan = `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/365d"}]}}}, "customers": {%s}}`

// TestSourceOfThreeProcesses: a change of the document is in force in three processes within its interval and a second.
func TestSourceOfThreeProcesses(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, fmt.Sprintf(freePlan, ""))
	upstream := upstreamOfQuotas(t)
	var all []*instance
	for n := range 3 {
		all = append(all, start(t, sourcedBy(d.URL, filepath.Join(t.TempDir(), fmt.Sprint("cache", n))), upstream))
	}
	for _, i := range all {
		if n := allowed(t, i, "acme", 4); n != 3 {
			t.Fatalf("by the plan of the source: %d of 4 requests passed, want 3", n)
		}
	}
	took := inForce(t, all, 1, func() { d.set(fmt.Sprintf(freePlan, `"acme": {"limits": {"api_calls": [{"limit": "5/365d"}]}}`)) })
	if took > 2*time.Second*slowness {
		t.Errorf("the change is in force after %v, want at most 2s on an idle machine", took)
	}
	for _, i := range all {
		if n := allowed(t, i, "acme", 4); n != 2 {
			t.Errorf("after the change: %d more requests passed, want 2: three were used before", n)
		}
	}
}

// TestStartWithoutTheSource: an instance serves from its cache when the source is unreachable, says so, and is not ready
// without a cache.
func TestStartWithoutTheSource(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "cache")
	upstream := upstreamOfQuotas(t)
	d := serveDocument(t, fmt.Sprintf(freePlan, `"acme": {"limits": {"api_calls": [{"limit": "5/365d"}]}}`))
	first := start(t, sourcedBy(d.URL, cache), upstream)
	if n := allowed(t, first, "acme", 6); n != 5 {
		t.Errorf("with the source: %d of 6 requests passed, want 5", n)
	}
	first.stop()
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the cache: %v, %v, want mode 0600", info, err)
	}
	d.set("")
	second := start(t, sourcedBy(d.URL, cache), upstream)
	if n := allowed(t, second, "acme", 6); n != 5 {
		t.Errorf("from the cache: %d of 6 requests passed, want 5", n)
	}
	if text := second.text(); !strings.Contains(text, "serving from the cache of the source") {
		t.Errorf("the log does not say that the cache is used:\n%s", text)
	}
	if got := metric(t, second, `headgate_source_state{state="cache"}`); got != 1 {
		t.Errorf("headgate_source_state of cache: got %v, want 1", got)
	}
	d.set(fmt.Sprintf(freePlan, ""))
	eventually(t, "the source", func() bool { return metric(t, second, `headgate_source_state{state="followed"}`) == 1 })

	d.set("")
	third := start(t, sourcedBy(d.URL, cache+"-none"), upstream)
	ready := func() string { _, body := get(t, "http://"+third.Health+"/readyz"); return strings.TrimSpace(body) }
	if body := ready(); !strings.Contains(body, "the source has given no objects yet") {
		t.Errorf("without source and cache, /readyz says %q", body)
	}
	if n := allowed(t, third, "acme", 1); n != 0 {
		t.Error("a request passed before the plans were known")
	}
	d.set(fmt.Sprintf(freePlan, ""))
	eventually(t, "ready", func() bool { return ready() == "ready" })
}

// TestFaultyObjects: one faulty customer does not block the others, and status names it until it is corrected.
func TestFaultyObjects(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, fmt.Sprintf(freePlan, `"acme": {"plan": "fre"}, "good": {"limits": {"api_calls": [{"limit": "5/365d"}]}}`))
	i := start(t, sourcedBy(d.URL, filepath.Join(t.TempDir(), "cache")), upstreamOfQuotas(t))
	if n := allowed(t, i, "good", 6); n != 5 {
		t.Errorf("beside a faulty customer: %d of 6 requests passed, want 5", n)
	}
	_, body := get(t, "http://"+i.Admin+"/api/v1/status")
	for _, want := range []string{`"customers/acme"`, `did you mean free?`, `"at":"customers/acme:1:10"`} {
		if !strings.Contains(strings.ReplaceAll(body, `": "`, `":"`), want) {
			t.Errorf("the status has no %s:\n%s", want, body)
		}
	}
	if !strings.Contains(i.text(), "a change of the source is held back") {
		t.Error("the log does not name the change that is held back")
	}
	d.set(fmt.Sprintf(freePlan, `"acme": {"plan": "free"}`))
	eventually(t, "the correction", func() bool { return metric(t, i, "headgate_source_held_changes") == 0 })
}
