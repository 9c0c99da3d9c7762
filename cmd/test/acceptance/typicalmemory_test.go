package acceptance

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestTypicalMemory: what check prints as typical is at most four times too high, and not too low.
func TestTypicalMemory(t *testing.T) {
	process, plain, secured, multiplexed, request := config.TypicalMemory()
	const many = 2000
	ca := newAuthority(t)
	files := ca.issue(t, "proxy.example", 2)
	for _, row := range []struct {
		name     string
		typical  int64
		protocol func(*http.Protocols)
		settings string
		waits    bool
	}{
		{"a connection", plain, func(p *http.Protocols) { p.SetHTTP1(true) }, "", false},
		{"a connection with TLS", secured, func(p *http.Protocols) { p.SetHTTP1(true) }, "tls: {cert: " + files.cert + ", key: " + files.key + "}", false},
		{"a connection with HTTP/2", multiplexed, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "", false},
		{"a request in flight", plain + request, func(p *http.Protocols) { p.SetHTTP1(true) }, "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var waiting sync.WaitGroup
			release := make(chan struct{})
			behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
				if row.waits {
					waiting.Done()
					<-release
				}
			}))
			defer behind.Close()
			defer close(release)
			i := start(t, fmt.Sprintf(hoardedConfiguration, 16384, "60s", "5m", row.settings), behind.URL)
			before := residentMemory(t, i.command.Process.Pid, "VmRSS:")
			if row.waits {
				waiting.Add(many)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			todo := make(chan struct{}, many)
			for range many {
				todo <- struct{}{}
			}
			close(todo)
			openOne := func() {
				protocols := new(http.Protocols)
				row.protocol(protocols)
				transport := &http.Transport{
					Protocols: protocols, TLSClientConfig: &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example"}, DialContext: (&net.Dialer{}).DialContext,
				}
				t.Cleanup(transport.CloseIdleConnections)
				scheme := "http"
				if row.settings != "" {
					scheme = "https"
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+i.Proxy+"/", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := transport.RoundTrip(req)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			workers := 16
			if row.waits {
				workers = many
			}
			for range workers {
				all.Go(func() {
					for range todo {
						openOne()
					}
				})
			}
			if row.waits {
				waiting.Wait()
			} else {
				all.Wait()
			}
			used := residentMemory(t, i.command.Process.Pid, "VmRSS:")
			printed := process + many*row.typical
			t.Logf("%d MiB without traffic, and %d MiB with %d times %s: %d MiB are printed", before>>20, used>>20, many, row.name, printed>>20)
			if used > printed || used-before < many*row.typical/4 {
				t.Errorf("%d times %s: %d MiB, %d MiB without them, and %d MiB are printed", many, row.name, used>>20, before>>20, printed>>20)
			}
			if _, metrics := get(t, "http://"+i.Health+"/metrics"); !strings.Contains(metrics, "\nheadgate_proxy_connections_closed_for_memory_total 0\n") {
				t.Error("a connection was closed for its memory")
			}
			cancel()
			all.Wait()
		})
	}
}
