package httplimit_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestDrop: a dropped request gets no answer over HTTP/1 and HTTP/2, and later requests of the middleware are served. A refusal that is
// not the client's fault is answered.
func TestDrop(t *testing.T) {
	drop := func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Drop} }
	for _, h2 := range []bool{false, true} {
		for reason, status := range map[headgate.Reason]int{headgate.OverLimit: 0, headgate.Banned: 0, headgate.StoreFull: 503} {
			h := httplimit.New(newGuard(t, denied(reason, time.Hour), product(t, drop)), httplimit.Options{})(http.NotFoundHandler())
			s := httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = h2
			s.StartTLS()
			for range 2 {
				resp, err := s.Client().Post(s.URL+"/v1/product", "text/plain", nil)
				got := 0
				if err == nil {
					got = resp.StatusCode
					_ = resp.Body.Close()
				} else if !h2 && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("HTTP/1, %v: the error is %v, want a closed connection", reason, err)
				}
				if got != status {
					t.Errorf("HTTP/2 %v, %v: status %d, %v; want %d", h2, reason, got, err, status)
				}
			}
			if resp, err := s.Client().Get(s.URL + "/other"); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("another request: %v %v", resp, err)
			} else {
				_ = resp.Body.Close()
			}
			s.Close()
		}
	}
}
