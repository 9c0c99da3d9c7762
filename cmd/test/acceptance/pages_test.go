package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// asking is a page that calls an API of another origin, with fetch and with ky. The header makes the browser ask with a preflight before each call.
const asking = `<!doctype html><title>Asking</title><pre id="told"></pre><p id="end"></p><script type="module">
import ky from "/ky/index.js";
(async () => {
  const told = [];
  for (let n = 0; n < 2; n++) {
    try {
      const r = await fetch("%s/orders", {headers: {"X-Client-Id": "page"}});
      told.push([r.status, r.headers.get("Retry-After") ? "Retry-After" : "", r.headers.get("RateLimit") ? "RateLimit" : ""].join(" "));
    } catch (e) {
      told.push(e.message);
    }
  }
  const waits = new Promise(resolve => setTimeout(resolve, 2500, "ky waits"));
  const call = ky.get("%s/orders", {headers: {"X-Client-Id": "page"}}).then(() => "ky passes", e => "ky: " + e.message);
  told.push(await Promise.race([waits, call]));
  document.getElementById("told").textContent = told.join(", ");
  document.getElementById("end").innerHTML = '<b id="done">done</b>';
})();
</script>`

const pagesConfiguration = `version: 1
max_memory: 16MiB
%s
rules:
  - name: orders
    match: {path: /orders}
    key: [ip]
    limits: ["1/1h"]
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
  data_plane: %s
`

// TestPagesOfOtherOrigins: with cors, the script of a page reads a refusal and its time, and preflights take no units. Without cors,
// the preflight takes the only unit, and the page sees a broken network, which ky tries again. The API lets pages of all origins read its own answers.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "X-Client-Id")
	}))
	defer api.Close()
	var page string
	library := http.StripPrefix("/ky/", http.FileServer(http.Dir(filepath.Join("testdata", "callers", "node_modules", "ky", "distribution"))))
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ky/") {
			library.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	defer pages.Close()
	tab := browse(t)
	for _, c := range []struct{ cors, want string }{
		{"", "Failed to fetch, Failed to fetch, ky: Failed to fetch"},
		{`cors: {origins: ["https://other.example"]}`, "Failed to fetch, Failed to fetch, ky: Failed to fetch"},
		{fmt.Sprintf("cors: {origins: [%q]}", pages.URL), "200  RateLimit, 429 Retry-After RateLimit, ky waits"},
		{`cors: {origins: ["*"]}`, "200  RateLimit, 429 Retry-After RateLimit, ky waits"},
	} {
		for _, plane := range []string{"fast", "standard"} {
			i := start(t, fmt.Sprintf(strings.Replace(pagesConfiguration, `"%s"`, `"%%s"`, 1), c.cors, plane), api.URL)
			page = fmt.Sprintf(asking, "http://"+i.Proxy, "http://"+i.Proxy)
			if err := chromedp.Do(tab, chromedp.Navigate(pages.URL), chromedp.WaitVisible(chromedp.ID("done"))); err != nil {
				t.Fatal(err)
			}
			got, err := chromedp.Run(tab, chromedp.TextContent(chromedp.ID("told")))
			if err != nil || got != c.want {
				t.Errorf("%s on the data plane %s: the page is told %q (error %v), want %q", c.cors, plane, got, err, c.want)
			}
			i.stop()
		}
	}
}

const bodiesConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: html, match: {path: /html/*}, key: [path], limits: ["1/1h"], on_exceed: {content_type: text/html, headers: {X-Key: "{key}"},
      body: "<!doctype html><title>{key}</title><textarea>{key}</textarea><p id=key>{key} {request_id}</p><div {status}></div>"}}
  - {name: page, match: {path: /page/*}, key: [path], limits: ["1/1h"], on_exceed: {style: html}}
  - {name: xml, match: {path: /xml/*}, key: [path], limits: ["1/1h"], on_exceed: {content_type: application/xhtml+xml,
      body: '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{key}</p></body></html>'}}
  - {name: json, match: {path: /json/*}, key: [path], limits: ["1/1h"], on_exceed: {content_type: application/json, body: '{"key": "{key}", "wait": {retry_after}}'}}
  - {name: text, match: {path: /text/*}, key: [path], limits: ["1/1h"], on_exceed: {content_type: text/plain, body: "{key}"}}
  - {name: problem, match: {path: /problem/*}, key: [path], limits: ["1/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestHostileKeys: whatever a client sends as its key, a browser that opens the refusal runs nothing, and sees no markup of the client.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.NotFoundHandler())
	defer service.Close()
	i, tab := start(t, bodiesConfiguration, service.URL), browse(t)
	for _, hostile := range []string{
		`<script>window.hit=1</script>`, `<img src=x onerror=window.hit=1>`, `"><svg onload=window.hit=1>`, `</title></textarea><script>window.hit=1</script>`,
		`]]><script>window.hit=1</script>`, `' autofocus onfocus='window.hit=1`, `","hit":"1`,
		"\u202e\u2028<b>", `&lt;script&gt;window.hit=1&lt;/script&gt;`, `{key}{request_id}`,
	} {
		for _, kind := range []string{"html", "page", "xml", "json", "text", "problem"} {
			target := "http://" + i.Proxy + "/" + kind + "/" + url.PathEscape(hostile)
			resp, err := http.Get(target) // It takes the only unit.
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			opened, err := chromedp.Run(tab, chromedp.NavigateResponse(target))
			if err != nil || opened.Status != http.StatusTooManyRequests {
				t.Fatalf("%s: the refusal is %+v: %v", target, opened, err)
			}
			got, err := chromedp.Run(tab, chromedp.Evaluate[string](`JSON.stringify([window.hit || 0, document.scripts.length, document.images.length,
				document.querySelectorAll("svg, b, [onload], [onfocus], [onerror]").length])`))
			var found []int
			if err != nil || json.Unmarshal([]byte(got), &found) != nil || found[0]+found[1]+found[2]+found[3] != 0 {
				t.Errorf("%s with the key %q: the browser finds %s of the client (error %v)", kind, hostile, got, err)
			}
		}
	}
}

// TestOwnAnswersOnAllPaths: over HTTP/1 and HTTP/2, on both data planes, each answer of the proxy itself has the fields of CORS and the
// body of its rule. A HEAD request gets no body, and answers of the service keep the fields of the service.
func TestOwnAnswersOnAllPaths(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example.com"
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://service.example")
		if r.URL.Path == "/states" {
			w.Header().Set("Access-Control-Expose-Headers", "X-Total")
		}
	}))
	defer service.Close()
	for _, plane := range []string{"fast", "standard"} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
			i := start(t, `version: 1
max_memory: 16MiB
cors: {origins: ["https://app.example.com"], credentials: true}
identity: {trusted_proxies: [127.0.0.1]}
rules:
  - {name: refused, match: {path: /refused}, key: [ip], limits: ["1/1h"], on_exceed: {body: '{"id": "{request_id}"}', content_type: application/json}}
  - {name: all, key: [ip], limits: ["1000/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s", data_plane: `+plane+`}
`, service.URL)
			client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
			client.Transport.(*http.Transport).Protocols.SetHTTP1(protocol == "HTTP/1.1")
			client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(protocol == "HTTP/2.0")
			for _, c := range []struct{ method, path, want string }{
				{"GET", "/refused", `200 https://service.example   exposed  `},
				{"GET", "/refused", `429 https://app.example.com Origin true exposed application/json {"id": "r-1"}`},
				{"HEAD", "/refused", `429 https://app.example.com Origin true exposed application/json `},
				{"GET", "/states", `200 https://service.example   X-Total  `},
				{"GET", "/silent", `200 https://service.example   exposed  `},
				{"OPTIONS", "/refused", `200 https://service.example   exposed  `},
			} {
				r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+i.Proxy+c.path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header = http.Header{"Origin": {origin}, "X-Request-Id": {"r-1"}, "Access-Control-Request-Method": {"PUT"}}
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				h := resp.Header
				exposed := h.Get("Access-Control-Expose-Headers")
				if strings.HasPrefix(exposed, "Retry-After, RateLimit,") {
					exposed = "exposed"
				}
				got := fmt.Sprintf("%d %s %s %s %s %s %s", resp.StatusCode, strings.Join(h["Access-Control-Allow-Origin"], ","), h.Get("Vary"),
					h.Get("Access-Control-Allow-Credentials"), exposed, h.Get("Content-Type"), body)
				if err != nil || got != c.want || resp.Proto != protocol {
					t.Errorf("%s %s over %s on the data plane %s: got %s over %s (error %v), want %s", c.method, c.path, protocol, plane, got, resp.Proto, err, c.want)
				}
			}
			client.CloseIdleConnections()
			i.stop()
		}
	}
}
