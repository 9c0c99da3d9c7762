package dogma_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate/pace/dogma"
)

// TestLoopback follows a server over real sockets, in plain text, with TLS and with HTTP/2,
// and cancels Follow during a watch.
func TestLoopback(t *testing.T) {
	for name, start := range map[string]func(s *httptest.Server){
		"http":  (*httptest.Server).Start,
		"https": (*httptest.Server).StartTLS,
		"http2": func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.token = "appToken-cafe"
			s.commit(document, documentOf(100))
			running := httptest.NewUnstartedServer(s)
			start(running)
			defer running.Close()
			c := dogma.Config{
				URL: running.URL, Project: "campaign", Repository: "limits", Path: document, Token: "appToken-cafe", Wait: 2 * time.Second,
			}
			if name != "http" {
				c.Client = running.Client() // This client trusts the server's certificate.
				c.Client.Timeout = time.Millisecond
				c.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
			}
			source, err := dogma.New(c)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			seen, ended := &notes{}, make(chan error, 1)
			go func() { ended <- source.Follow(ctx, seen) }()
			await(t, seen, 100)
			s.commit(document, documentOf(200))
			await(t, seen, 200)
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("Follow did not return within 30 s of the cancellation")
			}
			if troubles := seen.troubles(); len(troubles) != 0 {
				t.Errorf("got the faults %v, want none", troubles)
			}
		})
	}
}

// await waits until the last assigned plan has the limit.
func await(t *testing.T, seen *notes, limit int64) {
	t.Helper()
	end := time.After(30 * time.Second)
	for {
		if plans := seen.plans(); len(plans) > 0 && plans[len(plans)-1].Plan.Limit == limit {
			return
		}
		select {
		case <-end:
			t.Fatalf("no plan with a limit of %d was assigned within 30 s; the faults are %v", limit, seen.troubles())
		case <-time.After(time.Millisecond):
		}
	}
}
