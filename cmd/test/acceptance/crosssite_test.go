package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// attacking is a page that sends requests to an admin listener, as images and as requests whose answers it cannot read. It shows what its
// own origin may see of them: none gets an answer before the profiles have ended, unless it is refused.
const attacking = `<!doctype html><title>Attack</title><p id="end"></p><script>
(async () => {
  const at = new URLSearchParams(location.search).get("at");
  const calls = [["GET", "/debug/pprof/profile?seconds=20"], ["GET", "/debug/pprof/trace?seconds=20"], ["GET", "/debug/pprof/heap?gc=1"],
    ["GET", "/metrics"], ["GET", "/api/v1/usage"], ["POST", "/api/v1/reload"]];
  for (const [method, path] of calls) {
    const init = {method, mode: "no-cors", referrerPolicy: "no-referrer", credentials: "include"};
    await fetch(at + path, init).catch(() => {});
  }
  await new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = done;
    image.referrerPolicy = "no-referrer";
    image.src = at + "/debug/pprof/profile?seconds=20&image";
  });
  document.getElementById("end").innerHTML = '<b id="done">done</b>';
})();
</script>`

// TestPagesOfOtherSites: a page in a real browser starts no profile and no reload of an instance, on a loopback address and on one of the
// network, for which browsers send neither Sec-Fetch-Site nor, if the page says so, Referer.
func TestPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, attacking)
	}))
	defer behind.Close()
	network := networkAddresses(t)
	tab := browse(t, network...)
	for _, host := range append([]string{"127.0.0.1"}, network...) {
		i := launch(t, file(t, fmt.Sprintf("version: 1\nrules: []\nproxy: {listen: '127.0.0.1:0', upstream: '%s'}\n"+
			"admin: {listen: '%s', health: off}\n", behind.URL, net.JoinHostPort(host, "0"))))
		page := behind.URL + "/?at=http://" + i.Admin
		if err := chromedp.Do(tab, chromedp.Navigate(page), chromedp.WaitVisible(chromedp.ID("done"))); err != nil {
			t.Fatalf("%s: %v: a call of the page is not refused", host, err)
		}
		// A second profile of the processor is refused while one runs.
		got := ask(t, "http://"+i.Admin+"/debug/pprof/profile?seconds=1")
		if strings.HasPrefix(host, "127.") && got.status != http.StatusOK {
			t.Errorf("%s: a profile of a program: %+v", host, got)
		}
		var s struct {
			Reload struct {
				Succeeded int `json:"succeeded"`
				Failed    int `json:"failed"`
			} `json:"reload"`
		}
		if text := ask(t, "http://"+i.Admin+"/api/v1/status"); json.Unmarshal([]byte(text.body), &s) != nil || s.Reload.Succeeded+s.Reload.Failed > 0 {
			t.Errorf("%s: the page has reloaded the instance: %s", host, text.body)
		}
		// The operator reads what a browser of the same machine shows.
		resp, err := chromedp.Run(tab, chromedp.NavigateResponse("http://"+i.Admin+"/api/v1/status"))
		if err != nil || resp.Status != http.StatusOK {
			t.Errorf("%s: a typed address: %+v, %v", host, resp, err)
		}
	}
}

// networkAddresses lists an IPv4 address of this machine that is not loopback, if it has one.
func networkAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return []string{n.IP.String()}
		}
	}
	return nil
}
