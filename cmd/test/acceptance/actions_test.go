package acceptance

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const softConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: search, key: [all], algorithm: sliding_log, limits: ["5/1h"], soft: 60%%}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestSoftLimit: a request above a soft limit passes. The caller, the service and the metrics
// see that.
func TestSoftLimit(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, softConfiguration, behind.URL)
	const warning = `Headgate-Warning: soft-limit; policy="search"`
	forged := with("Headgate-Warning: forged")
	walk(t, "http://"+i.Proxy, []step{
		{times: 3, args: forged, want: 200, tells: []string{"Headgate-Warning:"}, seen: []string{"Headgate-Warning:"}},
		{times: 2, args: forged, want: 200, tells: []string{warning}, seen: []string{warning}},
		{want: 429, tells: []string{"Headgate-Warning:"}},
	})
	for reason, want := range map[string]float64{"within_limit": 3, "soft_limit": 2} {
		if n := decisions(t, i, "search", "enforce", "allow", reason); n != want {
			t.Errorf("%v decisions with reason %s, want %v", n, reason, want)
		}
	}
}

const redirectConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: plain
    match: {path: /plain/*}
    key: [all]
    limits: ["0/s"]
    on_exceed: {action: redirect, location: /slow-down}
  - name: found
    match: {path: /302/*}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: redirect, location: "https://busy.example.com{path}", status: 302}
  - name: other
    match: {path: /303/*}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: redirect, location: "https://busy.example.com/wait?for={path}", status: 303}
  - name: temporary
    match: {path: /307/*}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: redirect, location: "/queue{path}", status: 307}
  - name: permanent
    match: {path: /308/*}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: redirect, location: "http://127.0.0.1:1", status: 308}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func TestRedirect(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, redirectConfiguration, behind.URL)
	walk(t, "http://"+i.Proxy, []step{
		{path: "/plain/", want: 302, tells: []string{"Location: /slow-down"}},
		{path: "/302/a", want: 200, tells: []string{"Location:"}},
		{path: "/302/a%20b?c=d", want: 302, tells: []string{
			"Location: https://busy.example.com/302/a%20b", "Retry-After: ~3600", `RateLimit: "found";r=0;t=~3600`,
		}},
		{path: "//302/x/../%22%3E%3Cb%3E", want: 302, tells: []string{"Location: https://busy.example.com/302/%22%3E%3Cb%3E"}},
		{path: "/302/%0d%0aSet-Cookie:x", want: 400, tells: []string{"Location:", "Set-Cookie:"}},
		{path: "/303/", want: 200},
		{path: "/303/x&y=z", args: []string{"-d", "x"}, want: 303, tells: []string{"Location: https://busy.example.com/wait?for=/303/x%26y%3Dz"}},
		{path: "/307/", want: 200},
		{path: "/307/x", args: []string{"-d", "x"}, want: 307, tells: []string{"Location: /queue/307/x"}},
		{path: "/308/", want: 200},
		{path: "/308/", want: 308, tells: []string{"Location: http://127.0.0.1:1"}},
	})
	if n := decisions(t, i, "found", "enforce", "deny", "over_limit"); n != 2 {
		t.Errorf("found refused %v, want 2", n)
	}
}

const degradeConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: feed
    match: {path: /feed}
    key: [all]
    algorithm: sliding_log
    limits: ["2/1h"]
    on_exceed: {action: degrade, header: X-Level, value: low, hard: "5/1h", status: 503}
  - name: open
    match: {path: /open}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: degrade, header: X-Detail, value: "summary only"}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestDegrade: a request above the limit passes with a header that clients cannot forge. A
// request above the hard limit is refused.
func TestDegrade(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, degradeConfiguration, behind.URL)
	forged := with("X-Level: forged", "x-level: again", "X-Detail: all")
	walk(t, "http://"+i.Proxy, []step{
		{times: 2, path: "/feed", args: forged, want: 200, seen: []string{"X-Level:", "X-Detail:"}},
		{times: 3, path: "/feed", args: forged, want: 200, seen: []string{"X-Level: low", "X-Detail:"}},
		{path: "/feed", args: forged, want: 503, tells: []string{`RateLimit: "feed-hard";r=0;t=~3600`, "Retry-After: ~3600"}},
		{path: "/open", args: forged, want: 200, seen: []string{"X-Level:", "X-Detail:"}},
		{times: 9, path: "/open", args: forged, want: 200, seen: []string{"X-Level:", "X-Detail: summary only"}},
		{path: "/other", args: forged, want: 200, seen: []string{"X-Level:", "X-Detail:"}},
	})
	for _, c := range []struct {
		rule, verdict, reason string
		want                  float64
	}{
		{"feed", "allow", "within_limit", 2},
		{"feed", "allow", "degraded", 3},
		{"feed", "deny", "over_limit", 1},
		{"open", "allow", "within_limit", 1},
		{"open", "allow", "degraded", 9},
	} {
		if n := decisions(t, i, c.rule, "enforce", c.verdict, c.reason); n != c.want {
			t.Errorf("%s: %v times %s for %s, want %v", c.rule, n, c.verdict, c.reason, c.want)
		}
	}
}

const composedConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: api
    match: {path: /api}
    key: [header:X-Client-Id]
    algorithm: sliding_log
    limits: ["4/1h"]
    soft: 50%%
    on_exceed: {action: degrade, header: X-Level, value: low, hard: "6/1h", status: 429}
    ban: {after: "8/1h", for: 1h}
  - {name: wide, match: {path: /sum/*}, key: [all], algorithm: sliding_log, limits: ["3/1h"]}
  - {name: narrow, match: {path: /sum/narrow}, key: [all], algorithm: sliding_log, limits: ["1/1h"]}
  - name: elsewhere
    match: {path: /sum/*, headers: {X-Go: away}}
    key: [all]
    algorithm: sliding_log
    limits: ["1/1d"]
    on_exceed: {action: redirect, location: /busy, status: 307}
  - name: queue
    match: {path: /queue/*}
    key: [all]
    limits: ["1/1m"]
    on_exceed: {action: delay, max_wait: 1m}
  - name: patient
    match: {path: /patient}
    key: [all]
    limits: ["1/1m"]
    on_exceed: {action: delay, max_wait: 1h, max_waiters: 100}
    ban: {after: "3/1h", for: 1h}
  - {name: closed, match: {path: /queue/closed}, key: [all], limits: ["0/s"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestComposition: one rule warns, then degrades, then refuses, then bans. With several rules,
// the strictest one answers, and a refusal takes nothing from the other rules.
func TestComposition(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, composedConfiguration, behind.URL)
	a := with("X-Client-Id: a")
	soft := `Headgate-Warning: soft-limit; policy="api"`
	walk(t, "http://"+i.Proxy, []step{
		{times: 2, path: "/api", args: a, want: 200, tells: []string{"Headgate-Warning:"}, seen: []string{"X-Level:"}},
		{times: 2, path: "/api", args: a, want: 200, tells: []string{soft}, seen: []string{soft, "X-Level:"}},
		{times: 2, path: "/api", args: a, want: 200, seen: []string{"X-Level: low"}},
		{times: 2, path: "/api", args: a, want: 429, tells: []string{"Retry-After: ~3600", `RateLimit: "api-hard";r=0;t=~3600`}},
		{path: "/api", args: a, want: 429, tells: []string{"Retry-After: ~7200", `RateLimit: "api-ban";r=0;t=~7200`}},
		{path: "/api", args: with("X-Client-Id: b"), want: 200},

		{path: "/sum/narrow", want: 200},
		{times: 5, path: "/sum/narrow", want: 429}, // rule wide loses no units
		{path: "/sum/", args: with("X-Go: away"), want: 200},
		{path: "/sum/", args: with("X-Go: away"), want: 307, tells: []string{"Location: /busy"}},
		{path: "/sum/", want: 200},
		{path: "/sum/", want: 429, tells: []string{"Location:"}},
		{path: "/sum/", args: with("X-Go: away"), want: 307}, // both rules refuse, the other one for longer

		// a request that another rule refuses books no departure: the first allowed request departs at
		// once
		{times: 3, path: "/queue/closed", want: 429},
		{path: "/queue/open", args: []string{"--max-time", "10"}, want: 200},
		{path: "/patient", want: 200},
	})
	// Two requests wait and leave. The next attempt is the fourth, and a banned request does not
	// wait.
	for range 2 {
		givesUp(t, "0.2", "http://"+i.Proxy+"/patient")
	}
	walk(t, "http://"+i.Proxy, []step{{
		path: "/patient", args: []string{"--max-time", "10"}, want: 429, tells: []string{"Retry-After: ~7200", `RateLimit: "patient-ban";r=0;t=~7200`},
	}})
}

const independentConfiguration = `version: 1
max_memory: 16MiB
evaluate: independent
rules:
  - {name: wide, key: [all], algorithm: sliding_log, limits: ["4/1h"]}
  - {name: narrow, match: {path: /narrow}, key: [all], algorithm: sliding_log, limits: ["1/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func TestIndependentRules(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, independentConfiguration, behind.URL)
	walk(t, "http://"+i.Proxy, []step{
		{path: "/narrow", want: 200},
		{times: 3, path: "/narrow", want: 429, tells: []string{}},
		{path: "/", want: 429}, // all four requests took units of rule wide
	})
}

const shadowConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: reject, key: [all], limits: ["1/1h"], mode: shadow}
  - {name: soft, key: [all], algorithm: sliding_log, limits: ["2/1h"], soft: 50%%, mode: shadow}
  - {name: delay, key: [all], limits: ["1/1m"], on_exceed: {action: delay, max_wait: 90s}, mode: shadow}
  - {name: redirect, key: [all], limits: ["1/1h"], on_exceed: {action: redirect, location: /busy}, mode: shadow}
  - name: degrade
    key: [all]
    algorithm: sliding_log
    limits: ["1/1h"]
    on_exceed: {action: degrade, header: X-Level, value: low, hard: "2/1h"}
    mode: shadow
  - {name: ban, key: [all], limits: ["2/1h"], ban: {for: 1h}, mode: shadow}
  - {name: cost, key: [all], cost: header:X-Cost, limits: ["2/1h"], mode: shadow}
  - {name: gone, key: [all], limits: ["0/s"], mode: off}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestShadowOfEveryAction: a shadow rule of each action has no effect. The metrics show what it
// would have done to three requests, and to a fourth with an invalid cost.
func TestShadowOfEveryAction(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, shadowConfiguration, behind.URL)
	untouched := step{
		args: []string{"--max-time", "10"}, want: 200, tells: []string{"RateLimit:", "RateLimit-Policy:", "Headgate-Warning:", "Retry-After:", "Location:"},
		seen: []string{"Headgate-Warning:", "X-Level:"},
	}
	bad := untouched
	untouched.times = 3
	bad.args = append(with("X-Cost: many"), bad.args...)
	walk(t, "http://"+i.Proxy, []step{untouched, bad})
	for _, c := range []struct {
		rule, verdict, reason string
		want                  float64
	}{
		{"reject", "allow", "within_limit", 1},
		{"reject", "deny", "over_limit", 3},
		{"soft", "allow", "within_limit", 1},
		{"soft", "allow", "soft_limit", 1},
		{"soft", "deny", "over_limit", 2},
		{"delay", "allow", "within_limit", 1},
		{"delay", "wait", "scheduled", 1},
		{"delay", "deny", "wait_too_long", 2},
		{"redirect", "allow", "within_limit", 1},
		{"redirect", "deny", "over_limit", 3},
		{"degrade", "allow", "within_limit", 1},
		{"degrade", "allow", "degraded", 1},
		{"degrade", "deny", "over_limit", 2},
		{"ban", "allow", "within_limit", 2},
		{"ban", "deny", "banned", 2},
		{"cost", "allow", "within_limit", 2},
		{"cost", "deny", "over_limit", 1},
		{"cost", "deny", "never", 1},
		{"gone", "deny", "over_limit", -1},
	} {
		if n := decisions(t, i, c.rule, "shadow", c.verdict, c.reason); n != c.want {
			t.Errorf("%s would %s for %s %v times, want %v", c.rule, c.verdict, c.reason, n, c.want)
		}
	}
	if n := metric(t, i, `headgate_proxy_requests_total{code="2xx"}`); n != 4 {
		t.Errorf("%v requests are answered with 2xx, want 4", n)
	}
	if n := metric(t, i, "headgate_waiting"); n != 0 {
		t.Errorf("%v requests wait for a shadow", n)
	}
}

const throttleConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: throttle, key: [ip], algorithm: fixed_window, limits: ["2000/1200s"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestThrottle sends 2,500 requests against a limit of 2,000 in 1,200 seconds: 500 are refused.
// Windows are aligned to the clock, so the test starts again if a window ends meanwhile.
func TestThrottle(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	const window = 1200
	for {
		i := start(t, throttleConfiguration, behind.URL)
		began := time.Now().Unix() / window
		out, err := exec.CommandContext(t.Context(), tool(t, "curl", "curl"), "-sS", "-o", "/dev/null", "-w", `%{http_code}\n`,
			"http://"+i.Proxy+"/?n=[1-2500]").CombinedOutput()
		if err != nil {
			t.Fatalf("curl: %v\n%s", err, out)
		}
		if time.Now().Unix()/window != began {
			continue
		}
		if passed, refused := strings.Count(string(out), "200\n"), strings.Count(string(out), "429\n"); passed != 2000 || refused != 500 {
			t.Errorf("%d passed and %d were refused, want 2000 and 500", passed, refused)
		}
		if n := decisions(t, i, "throttle", "enforce", "deny", "over_limit"); n != 500 {
			t.Errorf("the metrics tell of %v refusals, want 500", n)
		}
		return
	}
}
