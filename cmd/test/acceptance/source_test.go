package acceptance

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/objects"
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
	elapsed := inForce(t, all, 1, func() { d.set(fmt.Sprintf(freePlan, `"acme": {"limits": {"api_calls": [{"limit": "5/365d"}]}}`)) })
	if elapsed > 2*time.Second*slowness {
		t.Errorf("the change is in force after %v, want at most 2s on an idle machine", elapsed)
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
	wantInForce(t, first, d)
	first.stop()
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the cache: %v, %v, want mode 0600", info, err)
	}
	d.set("")
	writtenBefore(t, cache, d.URL, time.Hour)
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
	wantAnHourOld(t, second)
	d.set(fmt.Sprintf(freePlan, ""))
	eventually(t, "the source", func() bool { return metric(t, second, `headgate_source_state{state="followed"}`) == 1 })
	wantInForce(t, second, d)

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

// sourceAge is the metric that an operator alerts on.
const sourceAge = "headgate_source_age_seconds"

// wantInForce checks that the metrics have the revision of the document, and an age of seconds.
func wantInForce(t *testing.T, i *instance, d *documents) {
	t.Helper()
	sum := sha256.Sum256([]byte(*d.text.Load()))
	if got := metric(t, i, fmt.Sprintf(`headgate_source_info{kind="http",revision="%x"}`, sum[:8])); got != 1 {
		t.Errorf("headgate_source_info of the document: got %v, want 1", got)
	}
	if age := metric(t, i, sourceAge); age < 0 || age > (30*time.Minute).Seconds() {
		t.Errorf("%s of a source that answers: got %v, want seconds", sourceAge, age)
	}
	if up := metric(t, i, "headgate_source_up"); up != 1 {
		t.Errorf("headgate_source_up of a source that answers: got %v, want 1", up)
	}
}

// writtenBefore makes a cache older.
func writtenBefore(t *testing.T, cache, url string, age time.Duration) {
	t.Helper()
	was, err := objects.ReadCache(cache, url)
	if err != nil {
		t.Fatal(err)
	}
	err = objects.WriteCache(cache, &objects.Content{
		Place: was.Place, Revision: was.Revision, Written: was.Written.Add(-age), Len: len(was.Objects), All: slices.Values(was.Objects),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantAnHourOld checks that the log, ctl status and the metrics say how old a cache of an hour is, and that the age grows.
func wantAnHourOld(t *testing.T, i *instance) {
	t.Helper()
	hour := regexp.MustCompile(`serving from the cache of the source.*"age":"1h[0-9]+m[0-9]+s"`)
	if text := i.text(); !hour.MatchString(text) {
		t.Errorf("the log does not say that the cache is an hour old:\n%s", text)
	}
	status, out, stderr := call(t, "ctl", "--admin", i.Admin, "status")
	if row := regexp.MustCompile(`(?m)^http \S+ +cache +[0-9a-f]{16} +1h[0-9]+m[0-9]+s `); status != 0 || !row.MatchString(out) {
		t.Errorf("ctl status does not say that the cache is an hour old: %d\n%s%s", status, out, stderr)
	}
	before := metric(t, i, sourceAge)
	if before < time.Hour.Seconds() || metric(t, i, "headgate_source_up") != 0 {
		t.Errorf("%s is %v, want an hour, and headgate_source_up 0", sourceAge, before)
	}
	eventually(t, "the age grows", func() bool { return metric(t, i, sourceAge) > before })
}

// TestWriteToADocument: ctl refuses to change what is in a document over HTTP, and says where to change it. The change
// there has an audit line, and the refused one has none.
func TestWriteToADocument(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, fmt.Sprintf(freePlan, `"acme": {}`))
	i := start(t, sourcedBy(d.URL, filepath.Join(t.TempDir(), "cache")), upstreamOfQuotas(t))
	for _, args := range [][]string{
		{"quota", "set", "acme", "note=paid"}, {"quota", "plan", "acme", "free"}, {"quota", "set", "acme", "note=paid", "--dry-run"},
	} {
		status, out, stderr := call(t, append([]string{"ctl", "--admin", i.Admin}, args...)...)
		for _, want := range []string{"source http", "can only be read", d.URL, "change it there", "etcd or postgres"} {
			if status != 1 || out != "" || !strings.Contains(stderr, want) {
				t.Errorf("ctl %v: status %d, want 1 with %q:\n%s%s", args, status, want, out, stderr)
			}
		}
	}
	d.set(fmt.Sprintf(freePlan, `"acme": {"note": "paid"}`))
	eventually(t, "the audit line", func() bool { return strings.Contains(i.text(), `"msg":"audit"`) })
	if n := strings.Count(i.text(), `"msg":"audit"`); n != 1 || !strings.Contains(i.text(), `"object":"customers/acme"`) {
		t.Errorf("%d audit lines, want that of the change in the document:\n%s", n, i.text())
	}
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
