package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrop: a request over a limit with the action drop gets no byte, on both data planes. HTTP/1 loses its connection, and HTTP/2 its
// stream: another stream of the connection is answered. The counters and the access log have the request.
func TestDrop(t *testing.T) {
	t.Parallel()
	for _, plane := range []string{"fast", "standard"} {
		t.Run(plane, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			defer behind.Close()
			lines := filepath.Join(t.TempDir(), "access.log")
			i := launch(t, file(t, fmt.Sprintf(`version: 1
log: {decisions: none, access: json, access_file: "%s"}
rules:
  - name: drops
    match: {path: /drops/*}
    key: [header:X-Client-Id]
    algorithm: fixed_window
    limits: ["1/1d"]
    on_exceed: {action: drop}
  - name: answers
    match: {path: /answers}
    key: [header:X-Client-Id]
    limits: ["1000/1d"]
    on_exceed: {action: drop, status: 403}
proxy: {listen: "127.0.0.1:0", upstream: "%s", data_plane: %s}
`, lines, behind.URL, plane)+adminAnywhere))
			for n, protocols := range []func(*http.Protocols){
				func(p *http.Protocols) { p.SetHTTP1(true) }, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
			} {
				transport := &http.Transport{Protocols: new(http.Protocols)}
				protocols(transport.Protocols)
				t.Cleanup(transport.CloseIdleConnections)
				ask := func(path string) (status int, err error) {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.Proxy+path, strings.NewReader("{}"))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("X-Client-Id", fmt.Sprint("client ", n))
					resp, err := transport.RoundTrip(req)
					if err != nil {
						return 0, err
					}
					return resp.StatusCode, resp.Body.Close()
				}
				for _, path := range []string{"/drops/first", "/answers"} {
					if status, err := ask(path); status != http.StatusOK || err != nil {
						t.Fatalf("%s: %d %v", path, status, err)
					}
				}
				for range 3 {
					if status, err := ask("/drops/later"); err == nil || errors.Is(err, context.Canceled) {
						t.Errorf("a dropped request gets %d %v, want an error of its connection", status, err)
					}
					if status, err := ask("/answers"); status != http.StatusOK || err != nil {
						t.Errorf("another request gets %d %v", status, err)
					}
				}
			}
			if n := metric(t, i, `headgate_decisions_total{mode="enforce",reason="over_limit",rule="drops",verdict="deny"}`); n != 6 {
				t.Errorf("%v decisions are counted, want 6", n)
			}
			eventually(t, "the access log", func() bool {
				text, err := os.ReadFile(lines)
				return err == nil && strings.Count(string(text), `"status":444`) == 6 && !strings.Contains(string(text), `"aborted"`)
			})
		})
	}
}
