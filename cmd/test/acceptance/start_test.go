package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestStartWithManyRules measures the time from the start of the process to the first answer, with 1,000 rules. The aim is 150 ms
// (make bench BENCH=^memory); the test allows a busy machine fifteen times as much.
func TestStartWithManyRules(t *testing.T) {
	const rules, starts, most = 1000, 5, 15 * 150 * time.Millisecond
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer behind.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "version: 1\nproxy: {listen: \"127.0.0.1:0\", upstream: %q}\nrules:\n", behind.URL)
	for n := range rules {
		fmt.Fprintf(&b, "  - {name: tenant-%d, match: {path: /v1/tenants/%d/*}, key: [ip], limits: [\"1000/1s\"]}\n", n, n)
	}
	path := file(t, b.String()+adminAnywhere)
	var times []time.Duration
	for range starts {
		began := time.Now()
		one := launch(t, path)
		response, err := http.Get("http://" + one.Proxy + "/v1/tenants/7/x")
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(began))
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || response.Header.Get("RateLimit") == "" {
			t.Fatalf("the first answer has status %d and RateLimit %q", response.StatusCode, response.Header.Get("RateLimit"))
		}
		freed(t, one)
		one.stop()
	}
	slices.Sort(times)
	t.Logf("from the start to the first answer with %d rules: median %v of %v", rules, times[starts/2], times)
	if times[starts/2] > most {
		t.Errorf("the median of %v is more than %v", times, most)
	}
}

// freed waits until the garbage of reading the configuration is returned to the system. Without that, the memory beside that of
// files is 35 MiB.
func freed(t *testing.T, i *instance) {
	t.Helper()
	const most = 20 << 20
	for end := time.Now().Add(patience); residentMemory(t, i.command.Process.Pid, "RssAnon:") > most; {
		if time.Now().After(end) {
			t.Fatalf("the memory beside that of files is %d MiB, more than %d", residentMemory(t, i.command.Process.Pid, "RssAnon:")>>20, most>>20)
		}
		runtime.Gosched()
	}
}
