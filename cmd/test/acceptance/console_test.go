package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestConsoleForeign: other names and other pages get nothing, and the page does not load in a frame.
func TestConsoleForeign(t *testing.T) {
	t.Parallel()
	i := start(t, browserConfiguration, "http://127.0.0.1:9")
	for _, path := range []string{"/console/", "/console/app.js", "/", "/api/v1/me"} {
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
		{"logic", `m.sentence({window_seconds: 15, totals: {requests: 100, refused: 0, service_failed: 12}, rules: [], attention: []}, 0).text`, `"The service fails 12 % of 100 requests/s."`},
		{"logic", `m.sentence({window_seconds: 15, totals: {requests: 100, refused: 26, service_failed: 1}, rules: [{name: "search", kind: "rule", refused: 26, would_refuse: 0, passed: 74, top: "ip=\"192.0.2.1\"", since: "1970-01-01T00:00:00Z"}], attention: []}, 300000).text`, `"Headgate refuses 26 % of 100 requests/s: rule search refuses 26/s, most often 192.0.2.1 (since 5 min)."`},
		{"logic", `m.sentence({window_seconds: 15, totals: {requests: 100, refused: 0, service_failed: 0, would_refuse: 0}, rules: [], attention: [{level: "fault", about: "store", text: "The store a:1 is not used"}]}, 0)`, `{"badge":{"level":"fault","text":"The store"},"text":"The store a:1 is not used. All of 100 requests/s are served."}`},
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
