package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/internal/testkit/rawhttp2"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// TestBlanksMakeNoKey checks that blanks around a value do not change the key. net/http
// keeps such blanks in HTTP/2.
func TestBlanksMakeNoKey(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: fixedClock})
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	rule := keyed(t, "once", "/x", "header:X-Api-Key")
	rule.Policies[0].Limit.Count = 1
	limited := httplimit.New(newGuard(t, store, rule), httplimit.Options{})
	server := httptest.NewUnstartedServer(limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("X-Api-Key") })))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	for n, value := range []string{" K", "K", "K ", "\tK", "K\t", " \t K \t "} {
		got := rawhttp2.Send(t, server.Listener.Addr().String(), nil,
			":method", "GET", ":scheme", "http", ":path", "/x", ":authority", "a", "x-api-key", value)
		if want := map[bool]string{true: "200", false: "429"}[n == 0]; got[":status"] != want {
			t.Errorf("%q: got response %v, want status %s", value, got, want)
		}
	}
	if seen != " K" {
		t.Errorf("the handler sees %q: the server already trims, so this test proves nothing", seen)
	}
}
