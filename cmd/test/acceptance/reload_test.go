package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangup sends SIGHUP and waits until the present file was read. The first reload to end may
// have started earlier, so hangup waits for two.
func (i *instance) hangup(t *testing.T) {
	t.Helper()
	done := func() float64 {
		return metric(t, i, `headgate_config_reloads_total{result="success"}`) +
			metric(t, i, `headgate_config_reloads_total{result="failure"}`)
	}
	before := done()
	for range 2 {
		if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "SIGHUP to be obeyed", func() bool { return done() > before })
		before++
	}
}

// reloadConfiguration takes the limit of rule client and then the upstream.
const reloadConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: client, match: {path: /v1/*}, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["%s"]}
  - {name: login, match: {path: /login}, key: [ip], limits: ["100/1d"], ban: {after: "2/1h", for: 1h}}
  - name: queue
    match: {path: /queue}
    key: [all]
    limits: ["1/2s"]
    on_exceed: {action: delay, max_wait: 10s}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
` + adminAnywhere

// TestReloadKeepsWhatIsCounted: counts, bans and waiting requests stay when the rules change.
func TestReloadKeepsWhatIsCounted(t *testing.T) {
	t.Parallel()
	upstream := &arrivals{start: time.Now()}
	behind := httptest.NewServer(upstream)
	defer behind.Close()
	write := func(limit string) string { return fmt.Sprintf(reloadConfiguration, limit, behind.URL) }
	i := launch(t, file(t, write("3/1h")))
	client := func(want int, tells ...string) step {
		return step{path: "/v1/product", args: with("X-Client-Id: a"), want: want, tells: tells}
	}
	began := time.Now()
	walk(t, "http://"+i.Proxy, []step{
		client(200, `RateLimit: "client";r=2;t=~3600`), client(200, `RateLimit: "client";r=1;t=~3600`),
		{times: 2, path: "/login", want: 200},
		{path: "/login", want: 429, tells: []string{"Retry-After: ~7200"}},
		{path: "/queue", want: 200},
	})
	bans := bansOf(t, i)
	callers := newCrowd(t, i)
	callers.url += "queue"
	sent := len(upstream.at)
	callers.ask(t.Context(), 1)
	callers.ask(t.Context(), 2)
	waiters(t, i, 2)

	replace(t, i.path, []byte(write("5/1h")))
	i.hangup(t)
	walk(t, "http://"+i.Proxy, []step{
		client(200, `RateLimit: "client";r=2;t=~3600`), // the third of five units
		{path: "/login", want: 429},
	})
	if after := bansOf(t, i); !slices.Equal(after, bans) {
		t.Errorf("the bans were %+v and are %+v", bans, after)
	}
	// When a rule no longer delays, its waiting requests still depart, and new ones are refused.
	replace(t, i.path, []byte(strings.Replace(write("2/1h"), "{action: delay, max_wait: 10s}", "{action: reject}", 1)))
	i.hangup(t)
	walk(t, "http://"+i.Proxy, []step{client(429), {path: "/queue", want: 429}})
	callers.all.Wait()
	if elapsed := time.Since(began); callers.statuses[http.StatusOK] != 2 || elapsed < 4*time.Second {
		t.Errorf("those that waited are answered %v after %v, want 200 for both after at least 4s", callers.statuses, elapsed)
	}
	if n := len(upstream.at) - sent; n != 3 {
		t.Errorf("%d requests reached the service after the reload, want 3", n)
	}
	waiters(t, i, 0)

	// A removed rule loses its counts, and the other rules keep theirs.
	above, rest, _ := strings.Cut(write("9/1h"), "  - {name: login")
	_, below, _ := strings.Cut(rest, "\n")
	replace(t, i.path, []byte(above+below))
	i.hangup(t)
	walk(t, "http://"+i.Proxy, []step{{times: 3, path: "/login", want: 200, tells: []string{"RateLimit:"}}, client(200)})
	if n := metric(t, i, `headgate_rule_info{algorithm="token_bucket",limits="100/1d",mode="enforce",rule="login"}`); n != -1 {
		t.Error("a rule that is gone is still shown")
	}
}

// TestReloadChangesTheUpstream: a reload changes the upstream and the fields of answers, from
// the next request on. A request in flight ends at its old upstream.
func TestReloadChangesTheUpstream(t *testing.T) {
	t.Parallel()
	reached, finish := make(chan struct{}), make(chan struct{})
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-finish
		fmt.Fprint(w, "before")
	}))
	defer before.Close()
	after := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "after") }))
	defer after.Close()
	i := launch(t, file(t, fmt.Sprintf(reloadConfiguration, "3/1h", before.URL)))
	slow := make(chan string, 1)
	go func() {
		_, body := get(t, "http://"+i.Proxy+"/v1/x", "X-Client-Id", "a")
		slow <- body
	}()
	<-reached
	text := strings.Replace(fmt.Sprintf(reloadConfiguration, "3/1h", after.URL), "proxy: {", "proxy: {header_style: x-ratelimit, ", 1)
	replace(t, i.path, []byte(text))
	i.hangup(t)
	got := ask(t, append(with("X-Client-Id: a"), "http://"+i.Proxy+"/v1/x")...)
	if got.body != "after" || got.header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("after the reload: %q %v, want the other service, and 1 remaining", got.body, got.header)
	}
	close(finish)
	if body := <-slow; body != "before" {
		t.Errorf("the request under way is answered with %q", body)
	}
}

// TestReloadWithVariables: environment variables override the file, at the start and at every
// reload.
func TestReloadWithVariables(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	text := fmt.Sprintf(reloadConfiguration, "3/1h", "nonsense")
	i := launch(t, file(t, text), "HEADGATE_PROXY_UPSTREAM="+behind.URL, "HEADGATE_PROXY_HEADER_STYLE=x-ratelimit",
		"HEADGATE_EVALUATE=", "HEADGATE_SERVICE_PORT=tcp://10.0.0.1:80")
	x := []string{"X-Ratelimit-Limit: 3", "RateLimit:"}
	walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200, tells: x}})
	replace(t, i.path, []byte(strings.Replace(strings.Replace(text, "3/1h", "4/1h", 1), "proxy: {", "proxy: {header_style: none, ", 1)))
	i.hangup(t)
	x[0] = "X-Ratelimit-Limit: 4"
	walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200, tells: x}})
}

// TestReloadOfEverNewLimits: a reload releases the limits that it removes. A store has at most
// 65,535 limits, and any number of reloads with new limits works.
func TestReloadOfEverNewLimits(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	const customers = 10_000
	write := func(version int) []byte {
		var b strings.Builder
		b.WriteString("version: 1\nmax_memory: 16MiB\nlog: {decisions: none}\nrules:\n" +
			"  - name: client\n    key: [header:X-Client-Id]\n    limits: [\"10/1h\"]\n    overrides:\n")
		for n := range customers {
			fmt.Fprintf(&b, "      customer-%d: {limits: [\"%d/1h\"]}\n", n, 100+version*customers+n)
		}
		fmt.Fprintf(&b, "proxy: {listen: \"127.0.0.1:0\", upstream: \"%s\"}\n%s", behind.URL, adminAnywhere)
		return []byte(b.String())
	}
	i := launch(t, file(t, string(write(0))))
	const reloads = 65_535/customers + 2
	for version := range reloads {
		replace(t, i.path, write(version+1))
		i.hangup(t)
		if metric(t, i, "headgate_config_last_reload_successful") != 1 {
			t.Fatalf("reload %d failed:\n%s", version+1, i.text())
		}
	}
	walk(t, "http://"+i.Proxy, []step{{
		args: with("X-Client-Id: customer-7"), want: 200,
		tells: []string{fmt.Sprintf(`RateLimit-Policy: "client";q=%d;w=3600`, 100+reloads*customers+7)},
	}})
}
