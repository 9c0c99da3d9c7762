package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// TestDenseSourceIsBounded: a source sends a part of the densest YAML document that is read, a sixth by default. The proxy stays within
// that part of what check prints for a source, beside the rest.
func TestDenseSourceIsBounded(t *testing.T) { denseSource(t, 6) }

func denseSource(t *testing.T, part int) {
	t.Helper()
	const most = 2_990_000 // separators; see maxSeparators of cmd/internal/source/http
	var document strings.Builder
	document.WriteString("customers:\n")
	const each = 30_000
	for n := range most / part / each {
		fmt.Fprintf(&document, "  c%d: {%s1}\n", n, strings.Repeat("1,", each)) // Each comma ends a key and a value.
	}
	served := make(chan struct{}, 1)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(document.String()))
		select {
		case served <- struct{}{}:
		default:
		}
	}))
	defer source.Close()
	const settings = "version: 1\nmax_memory: 16MiB\nproxy: {listen: '127.0.0.1:0', upstream: '%s', max_connections: 16, max_requests: 16}\n" +
		"rules:\n  - {name: api, key: [header:X-Customer], quota: calls}\nplans: {free: {quotas: {calls: [{limit: 3/30d}]}}}\ndefault_plan: free\n"
	i := launch(t, file(t, fmt.Sprintf(settings, source.URL)+"source: {http: {url: '"+source.URL+"', interval: 1h, timeout: 10m}}\n"+adminAnywhere))
	<-served
	read := func() bool {
		_, metrics := get(t, "http://"+i.Health+"/metrics")
		return strings.Contains(metrics, "\nheadgate_source_up 1")
	}
	for end := time.Now().Add(5 * time.Minute); !read(); <-time.After(100 * time.Millisecond) { // 20 s for the whole document on two free cores.
		if time.Now().After(end) {
			t.Fatalf("the document is not read after 5 minutes: %s", i.text())
		}
	}
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	without := *loaded
	without.Source = nil
	rest := without.MemoryBound()
	withinBound(t, i, rest+(loaded.MemoryBound()-rest)/int64(part))
}
