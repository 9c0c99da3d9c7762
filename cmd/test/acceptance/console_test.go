package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const consoleConfiguration = `version: 1
max_memory: 64MiB
evaluate: independent
fair_share: {client: header:X-Client-Id, capacity: 30, cycle: 1s}
throttle: {concurrency: 4}
rules:
  - name: search
    match: {path: /search}
    key: [header:X-Client-Id]
    limits: ["3/1s"]
  - name: login
    match: {path: /login}
    key: [header:X-Client-Id]
    limits: ["2/1m"]
    ban: {after: 2/1m, for: 1h}
  - name: report
    match: {path: /report}
    key: [header:X-Client-Id]
    limits: ["1/1s"]
    mode: shadow
  - name: '%s'
    match: {path: /odd}
    key: [header:X-Client-Id]
    limits: ["1/1s"]
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", console: {actions: true}}
`

// hostileNames are what clients may call themselves.
func hostileNames() []string {
	return []string{
		`<img src=x onerror=alert(1)>`, `"><script>alert(2)</script>`, `' onmouseover='alert(3)`, "\u202egnp.exe", strings.Repeat("long", 250), `${alert(4)}{{7*7}}`,
	}
}

// startConsole starts an instance under load.
func startConsole(t *testing.T) *instance {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(behind.Close)
	i := launch(t, file(t, fmt.Sprintf(consoleConfiguration, "odd-rule", behind.URL)))
	requests := [][2]string{{"acme", "/search"}, {"umbrella", "/search"}, {"acme", "/report"}, {"botnet", "/login"}, {"acme", "/search"}, {"acme", "/broken"}, {"umbrella", "/plain"}}
	for _, name := range hostileNames() {
		requests = append(requests, [2]string{name, "/odd"}, [2]string{name, "/odd"})
	}
	burden(t, i.Proxy, 15*time.Millisecond, requests)
	return i
}

// consoleViews are the routes of all views.
var consoleViews = []string{"overview", "clients", "keys", "throttle", "instances", "quotas", "why?who=acme&path=/search", "rule/search"}

// TestConsole opens each view in each scheme of colours and each width under load: no error, no violation of the policy, no request to
// another place, no overflow, nothing that axe-core finds; names of clients are text.
func TestConsole(t *testing.T) {
	t.Parallel()
	i := startConsole(t)
	c := openConsole(t, i.Admin, "overview")
	c.until("document.querySelector('#rules tbody tr')")
	for _, view := range consoleViews {
		c.show(view)
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 768, 1440, 1920} {
				about := fmt.Sprintf("%s, %s, %d pixels", view, scheme, width)
				c.size(width, scheme)
				// Charts take their width from the page in the next frames.
				c.until(fmt.Sprintf("innerWidth === %d && document.documentElement.scrollWidth <= innerWidth", width))
				if height := valueOf[float64](c, "document.querySelector('main').getBoundingClientRect().height"); height < 100 {
					t.Errorf("%s: the view is empty", about)
				}
				c.check(about)
			}
			c.size(map[string]int64{"light": 1440, "dark": 360}[scheme], scheme)
			for _, violation := range c.violations() {
				t.Errorf("%s, %s: %s", view, scheme, violation)
			}
		}
	}
	c.size(1440, "light")
	c.show("keys")
	c.until("document.querySelector('#top')?.innerText.includes('<img src=x onerror=alert(1)>')")
	c.show("clients")
	c.until("document.querySelector('#shares')?.innerText.includes('<img src=x onerror=alert(1)>')")
	if n := valueOf[int](c, "document.querySelectorAll('img, script:not([src=\"app.js\"]), iframe').length"); n != 0 {
		t.Errorf("%d elements that the page does not make", n)
	}
	c.check("hostile names")
	i.stop()
	c.until("document.querySelector('.banner.fault')?.innerText.startsWith('No answer from 127.0.0.1:')")
}

// TestConsoleFigures: the page shows what the API answers, within a tick.
func TestConsoleFigures(t *testing.T) {
	t.Parallel()
	i := startConsole(t)
	c := openConsole(t, i.Admin, "overview")
	c.until("document.querySelector('#rules tbody tr')")
	// Both are read in the page, so that no second passes between them: the page reads each second.
	const compare = `(async () => {
		const { state } = await import("/console/state.js");
		const { number } = await import("/console/format.js");
		const live = await (await fetch("/api/v1/live?limit=50")).json();
		if (!state.live || state.live.sequence !== live.sequence) return "";
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const shown = [...document.querySelectorAll(".figures-row b")].map((b) => b.textContent);
		const t = live.totals;
		return JSON.stringify({ shown, want: [t.requests, t.refused, t.passed, t.service_failed].map(number), refused: t.refused, rules: [...document.querySelectorAll("#rules tbody tr")].length, all: live.rules.length });
	})()`
	var got struct {
		Shown   []string `json:"shown"`
		Want    []string `json:"want"`
		Refused float64  `json:"refused"`
		Rules   int      `json:"rules"`
		All     int      `json:"all"`
	}
	for end := time.Now().Add(2 * patience); ; <-time.After(50 * time.Millisecond) {
		text := valueOf[string](c, compare)
		if text != "" {
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if got.Refused > 0 && strings.Join(got.Shown, " ") == strings.Join(got.Want, " ") && got.Rules == got.All {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the page shows %v, the API answers %v; %d rules of %d", got.Shown, got.Want, got.Rules, got.All)
		}
	}
}

// TestConsoleForeign: other names and other pages get nothing, and the page does not load in a frame.
func TestConsoleForeign(t *testing.T) {
	t.Parallel()
	i := start(t, browserConfiguration, "http://127.0.0.1:9")
	for _, path := range []string{"/console/", "/console/app.js", "/", "/api/v1/me", "/api/v1/live"} {
		for _, row := range [][]string{{"Host", "evil.example"}, {"Origin", "http://evil.example"}} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Admin+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if req.Header.Set(row[0], row[1]); row[0] == "Host" {
				req.Host = row[1]
			}
			answer, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d, want 403", path, row, answer.StatusCode)
			}
		}
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>evil</title><iframe src="http://%s/console/"></iframe>`, i.Admin)
	}))
	defer evil.Close()
	tab := browse(t)
	statuses := make(chan int64, 100)
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(tab, func(event any) {
		if e, ok := event.(*network.EventResponseReceived); ok && strings.Contains(e.Response.URL, "/console/") {
			statuses <- e.Response.Status
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(evil.URL)); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-statuses:
		if status != http.StatusForbidden {
			t.Errorf("a frame of another site: %d, want 403", status)
		}
	case <-time.After(patience):
		t.Error("the browser has not asked for the frame")
	}
}

// TestConsoleLogic runs the functions of the page that do not touch it.
func TestConsoleLogic(t *testing.T) {
	t.Parallel()
	i := start(t, browserConfiguration, "http://127.0.0.1:9")
	c := openConsole(t, i.Admin, "overview")
	for _, row := range []struct{ module, expression, want string }{
		{"logic", `m.parseQuestion("acme GET /v1/search")`, `{"who":"acme","method":"GET","path":"/v1/search","address":"","id":""}`},
		{"logic", `m.parseQuestion("  /login 203.0.113.9 POST ")`, `{"who":"","method":"POST","path":"/login","address":"203.0.113.9","id":""}`},
		{"logic", `m.parseQuestion("2001:db8::1 id:4f")`, `{"who":"","method":"GET","path":"","address":"2001:db8::1","id":"4f"}`},
		{"logic", `m.parseRoute("#/rule/a%20b?x=%26").name + m.parseRoute("#/rule/%zz").name + m.parseRoute("").view`, `"a b%zzoverview"`},
		{"logic", `m.parseRoute(m.route("why", "", {key: "a=\"b\" & <c>"})).query.get("key")`, `"a=\"b\" & <c>"`},
		{"logic", `m.keyText('header:X-Client-Id="a \\" b" method="GET"')`, `"a \" b · GET"`},
		{"logic", `m.keyText("plain")`, `"plain"`},
		{"logic", `[0, 0.3, 1, 9, 11, 120, 151, 1000].map(m.nice)`, `[1,0.3,1,10,15,150,200,1000]`},
		{"logic", `m.axisEnd([...Array(99).fill(10), 1000]) < 30`, `true`},
		{"logic", `m.quantile([0.01, 0.1, 1], [0, 100, 0, 0], 0.5).toFixed(3)`, `"0.055"`},
		{"logic", `m.quantile([0.01], [0, 0], 0.5)`, `null`},
		{"logic", `m.inOrder([{k: "c"}, {k: "a"}, {k: "b"}], (r) => r.k, ["a", "b"]).map((r) => r.k).join("")`, `"abc"`},
		{"series", `(() => { const t = new m.Tier(1, 300); t.add({start: 1000, step: 1, series: {a: [1, 1, 1]}}); t.add({start: 1000, step: 1, series: {b: [1, 1, 1, 1, 1]}}); return [t.since(["a", "b"]), t.since(["b"])]; })()`, `[1002,1004]`},
		{"logic", `[[100, 0, 12], [100, 26, 1], [100, 0, 0], [0, 0, 0]].map(([requests, refused, service_failed]) => m.cause({window_seconds: 15, totals: {requests, refused, service_failed}}).text).join()`, `"The service,Headgate,Served,Idle"`},
		{"logic", `m.cause({window_seconds: 15, totals: {requests: 1, refused: 0}, attention: [{level: "fault", about: "store"}]}).text`, `"The store"`},
		{"format", `[0, 0.01, 0.4, 12.34, 129.6, 12500, 1e6, 2.5e9, NaN].map(m.number).join(" ")`, `"0 <0.1 0.4 12.3 130 12.5k 1M 2.5G –"`},
		{"format", `[0, 0.05, 3.25, 59, 300, 7200, 200000].map(m.duration).join(", ")`, `"0 s, 50 ms, 3.3 s, 59 s, 5 min, 2 h, 2 d"`},
		{"format", `[m.percent(1, 3), m.percent(1, 10000), m.percent(0, 0), m.clip("abcdef", 4)].join(" ")`, `"33 % <0.1 % – abc…"`},
		{"series", `(() => { const t = new m.Tier(1, 300); t.add({start: 1000, step: 1, series: {a: [1, null, 3, 4]}}); return t.columns("a", 1000, 1004, 2, false); })()`, `[1,3.5]`},
		{"series", `(() => { const t = new m.Tier(10, 360); t.add({start: 1000, step: 10, series: {a: [100]}}); t.add({start: 1000 + 3600, step: 10, series: {a: [50]}}); return [t.at("a", 1000), t.at("a", 4600), ...t.columns("a", 4600, 4620, 1, false)]; })()`, `[null,50,5,null]`},
	} {
		got := valueOf[string](c, fmt.Sprintf(`import("/console/%s.js").then((m) => JSON.stringify(%s))`, row.module, row.expression))
		if got != row.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", row.module, row.expression, got, row.want)
		}
	}
	c.check("logic")
}
