//go:build soak

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSoakSourceInForce: each of 20 changes is in force in three processes within the promised time.
func TestSoakSourceInForce(t *testing.T) {
	const changes = 20
	within := func(name string, all []*instance, most time.Duration, change func(n int)) {
		t.Helper()
		var durations []time.Duration
		for n := range changes {
			durations = append(durations, inForce(t, all, float64(n+1), func() { change(n) }))
		}
		slices.Sort(durations)
		t.Logf("%s: changes are in force after %v to %v", name, durations[0], durations[changes-1])
		if durations[changes-1] > most {
			t.Errorf("%s: a change is in force after %v, want at most %v", name, durations[changes-1], most)
		}
	}
	const entry = `{"limits": {"api_calls": [{"limit": "5/365d"}]}}`
	for _, s := range watchedSources(t) {
		within(s.name, followers(t, s.config), time.Second, func(n int) { s.put(fmt.Sprint("customer-", n), entry) })
	}
	d := serveDocument(t, fmt.Sprintf(freePlan, ""))
	within("http", followers(t, fmt.Sprintf("{http: {url: %q, interval: 1s}}", d.URL)), 2*time.Second, func(n int) {
		var all []string
		for k := range n + 1 {
			all = append(all, fmt.Sprintf(`"customer-%d": %s`, k, entry))
		}
		d.set(fmt.Sprintf(freePlan, strings.Join(all, ", ")))
	})
}

// TestSoakSourceOfManyCustomers: 100,000 customers under 10,000 different limits are in force within 5 s of the start of the
// process, from each kind of source.
func TestSoakSourceOfManyCustomers(t *testing.T) {
	const customers, limits = 100_000, 10_000
	text := func(n int) string {
		return fmt.Sprintf(`{"limits": {"api_calls": [{"limit": "%d/30d"}]}}`, 1_000_000+n%limits)
	}
	began := func(name, source string) {
		t.Helper()
		path := file(t, strings.Replace(fmt.Sprintf(manyCustomers, "x", filepath.Join(t.TempDir(), "cache")),
			`source: {etcd: {endpoints: ["http://x"], prefix: /objects}`, "source: {"+source, 1))
		start := time.Now()
		i := launchServer(t, path)
		eventually(t, "the customers", func() bool { status, _ := pageOf(t, "http://"+i.Health+"/readyz"); return status == http.StatusOK })
		elapsed := time.Since(start).Round(time.Millisecond)
		t.Logf("%s: 100,000 customers are in force %v after the start; the process has %d MiB, at most %d MiB", name, elapsed,
			residentMemory(t, i.command.Process.Pid, "VmRSS:")>>20, peak(t, i.command.Process.Pid)>>20)
		if n := metric(t, i, `headgate_source_objects{kind="customers"}`); n != customers {
			t.Errorf("%s: %v customers are in force, want 100,000", name, n)
		}
		if elapsed > 5*time.Second {
			t.Errorf("%s: 100,000 customers took %v, want at most 5s", name, elapsed)
		}
		i.stop()
	}
	database, config := tablesOfObjects(t)
	database.SQL(fmt.Sprintf(`INSERT INTO headgate.objects (kind, name, body) SELECT 'customer', 'customer-' || to_char(n, 'FM000000'),
		'{"limits": {"api_calls": [{"limit": "' || 1000000 + n %% %d || '/30d"}]}}' FROM generate_series(0, %d) AS n`, limits, customers-1))
	began("PostgreSQL", strings.TrimSuffix(strings.TrimPrefix(config, "{"), "}"))

	var inJSON, inYAML strings.Builder
	all := map[string]json.RawMessage{}
	inYAML.WriteString("customers:\n")
	for n := range customers {
		name := fmt.Sprintf("customer-%06d", n)
		all[name] = json.RawMessage(text(n))
		fmt.Fprintf(&inYAML, "  %s: {limits: {api_calls: [{limit: %d/30d}]}}\n", name, 1_000_000+n%limits)
	}
	if err := json.NewEncoder(&inJSON).Encode(map[string]any{"customers": all}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct{ name, kind, text string }{
		{"HTTP, JSON", "application/json", inJSON.String()}, {"HTTP, YAML", "application/yaml", inYAML.String()},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", d.kind)
			w.Header().Set("Content-Length", fmt.Sprint(len(d.text)))
			_, _ = w.Write([]byte(d.text))
		}))
		t.Cleanup(server.Close)
		began(d.name, fmt.Sprintf("http: {url: %q, interval: 10m}", server.URL))
	}
}

// TestSoakMemoryOfSourcedCustomers measures what a customer of a source costs a process in all, beside its name and its text:
// the heap in use with 100,000 customers under 10,000 different limits against that with 1,000.
func TestSoakMemoryOfSourcedCustomers(t *testing.T) {
	const few, many, limits, most = 1_000, 100_000, 10_000, 300
	texts := 0
	heap := func(customers int) int {
		all := map[string]json.RawMessage{}
		texts = 0
		for n := range customers {
			name := fmt.Sprintf("customer-%06d", n)
			all[name] = json.RawMessage(fmt.Sprintf(`{"limits":{"api_calls":[{"limit":"%d/30d"}]}}`, 1_000_000+n%limits))
			texts += len(name) + len(all[name])
		}
		document, err := json.Marshal(map[string]any{"customers": all})
		if err != nil {
			t.Fatal(err)
		}
		d := serveDocument(t, string(document))
		path := file(t, strings.Replace(fmt.Sprintf(manyCustomers, "x", filepath.Join(t.TempDir(), "cache")),
			`{etcd: {endpoints: ["http://x"], prefix: /objects}`, fmt.Sprintf("{http: {url: %q, interval: 10m}", d.URL), 1))
		i := launchServer(t, path)
		eventually(t, "the customers", func() bool { status, _ := pageOf(t, "http://"+i.Health+"/readyz"); return status == http.StatusOK })
		defer i.stop()
		eventually(t, "the cache", func() bool { return metric(t, i, "headgate_source_cache_timestamp_seconds") > 0 })
		var size int
		for range 3 {
			_, page := pageOf(t, "http://"+i.Admin+"/debug/pprof/heap?debug=1&gc=1")
			_, after, _ := strings.Cut(page, "# HeapAlloc = ")
			if _, err := fmt.Sscan(after, &size); err != nil {
				t.Fatalf("the heap: %v in %.200q", err, after)
			}
		}
		t.Logf("%d customers: %d KiB of heap, %d MiB of memory", customers, size>>10, residentMemory(t, i.command.Process.Pid, "VmRSS:")>>20)
		return size
	}
	base := heap(few)
	before := texts
	all := heap(many) - base
	each, own := all/(many-few), (texts-before)/(many-few)
	t.Logf("a customer takes %d bytes of heap, and its name and text are %d of them", each, own)
	if each-own > most {
		t.Errorf("a customer takes %d bytes beside its name and text, want at most %d", each-own, most)
	}
}
