package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const browserConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: search
    match: {path: /search}
    key: [cookie:session]
    limits: ["2/1h"]
  - name: shop
    match: {path: /shop}
    key: [cookie:session]
    limits: ["1/1h"]
    on_exceed: {action: redirect, location: "/queue?from={path}"}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// searching is a page that sends three requests against a limit of two, and shows the answers.
const searching = `<!doctype html><title>Search</title><pre id="told"></pre><p id="end"></p><script>
(async () => {
  const told = [];
  for (let n = 0; n < 3; n++) {
    const r = await fetch("/search?q=" + n);
    const body = await r.text();
    told.push([r.status, r.headers.get("RateLimit-Policy"), r.headers.get("RateLimit"), r.headers.get("Retry-After"),
      r.headers.get("Content-Type"), r.ok ? body : JSON.parse(body).title].join(" | "));
  }
  document.getElementById("told").textContent = told.join("\n");
  document.getElementById("end").innerHTML = '<b id="done">done</b>';
})();
</script>`

// browse starts a browser with an empty profile that loads only the test's pages, from loopback and these addresses.
func browse(t *testing.T, addresses ...string) context.Context {
	t.Helper()
	rules := "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
	for _, a := range addresses {
		rules += ", EXCLUDE " + a
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(tool(t, "chromium", "chromium")), chromedp.UserDataDir(t.TempDir()),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("host-resolver-rules", rules),
	)
	// The browser is closed after the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	allocated, release := chromedp.NewExecAllocator(ctx, options...)
	tab, end := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		if err := chromedp.Cancel(tab); err != nil {
			t.Logf("closing the browser: %v", err)
		}
		end()
		release()
		cancel()
	})
	return tab
}

// TestBrowser: the scripts of a page read the fields of a limit, and the browser follows a rule
// that redirects.
func TestBrowser(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", Path: "/"})
			fmt.Fprint(w, searching)
		case "/search":
			fmt.Fprintf(w, "found %s", r.URL.Query().Get("q"))
		case "/queue":
			fmt.Fprintf(w, "<title>Queue</title><p id=place>after %s</p>", r.URL.Query().Get("from"))
		default:
			fmt.Fprint(w, "<title>Shop</title><p id=place>shop</p>")
		}
	}))
	defer behind.Close()
	i := start(t, browserConfiguration, behind.URL)
	tab, base := browse(t), "http://"+i.Proxy
	if err := chromedp.Do(tab, chromedp.Navigate(base+"/"), chromedp.WaitVisible(chromedp.ID("done"))); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(tab, chromedp.TextContent(chromedp.ID("told")))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for n, want := range []string{
		`^200 \| "search";q=2;w=3600 \| "search";r=1;t=1\d{3} \|  \| text/html; charset=utf-8 \| found 0$`,
		`^200 \| "search";q=2;w=3600 \| "search";r=0;t=3\d{3} \|  \| text/html; charset=utf-8 \| found 1$`,
		`^429 \| "search";q=2;w=3600 \| "search";r=0;t=1\d{3} \| 1\d{3} \| application/problem\+json \| Quota Exceeded$`,
	} {
		if len(lines) != 3 || !regexp.MustCompile(want).MatchString(lines[n]) {
			t.Errorf("the page is told in line %d of\n%s\nwant\n%s", n+1, text, want)
		}
	}
	for n, want := range []struct{ address, place string }{{"/shop", "shop"}, {"/queue?from=/shop", "after /shop"}} {
		if err := chromedp.Do(tab, chromedp.Navigate(base+"/shop"), chromedp.WaitVisible(chromedp.ID("place"))); err != nil {
			t.Fatal(err)
		}
		place, err := chromedp.Run(tab, chromedp.TextContent(chromedp.ID("place")))
		address, failed := chromedp.Run(tab, chromedp.Location())
		if err != nil || failed != nil || place != want.place || address != base+want.address {
			t.Errorf("visit %d ends at %q with %q, want %q: %v %v", n+1, address, place, want, err, failed)
		}
	}
	// The browser also shows the refusal itself as a page.
	resp, err := chromedp.Run(tab, chromedp.NavigateResponse(base+"/search?q=9"))
	if err != nil || resp.Status != http.StatusTooManyRequests {
		t.Errorf("a refused page: %+v, %v", resp, err)
	}
}
