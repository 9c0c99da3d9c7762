package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestBanByAnswersOfManyInstances: wrong passwords through two instances of one store count together, those of 64 callers at once are
// bounded by the limit, and the ban is listed, holds in both and is lifted in both.
func TestBanByAnswersOfManyInstances(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{"redis": "redis://" + redis.Start(t).Addr, "memcached": "memcached://" + memcached.Start(t).Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wrong atomic.Int64
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				wrong.Add(1)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer behind.Close()
			text := fmt.Sprintf(`version: 1
store: %s
store_timeout: 5s
rules:
  - name: login
    key: [header:X-Client-Id]
    algorithm: sliding_window
    limits: ["5/1h"]
    count: {status: [401]}
    ban: {after: "5/1h", for: 1h}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`, store, behind.URL) + adminAnywhere
			instances := []*instance{launch(t, file(t, text)), launch(t, file(t, text))}
			a := with("X-Client-Id: a")
			walk(t, "http://"+instances[0].Proxy, []step{{args: a, want: 401}})
			var all sync.WaitGroup
			for n := range 64 {
				all.Go(func() {
					resp, err := http.DefaultClient.Do(asLoginClient(t, instances[n%2]))
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
				})
			}
			all.Wait()
			if n := wrong.Load(); n != 5 {
				t.Errorf("%d passwords were tried, want 5", n)
			}
			eventually(t, "the ban", func() bool { return len(bansOf(t, instances[0]))+len(bansOf(t, instances[1])) > 0 })
			walk(t, "http://"+instances[0].Proxy, []step{{args: a, want: 429, tells: []string{`RateLimit: "login-ban";r=0;t=~7200`}}})
			walk(t, "http://"+instances[1].Proxy, []step{{args: a, want: 429, tells: []string{`RateLimit: "login-ban";r=0;t=~7200`}}})
			id := bansOf(t, instances[0])[0].ID
			if status, _, stderr := call(t, "ctl", "bans", "lift", id, "--admin", instances[1].Admin); status != 0 {
				t.Errorf("status %d, %q", status, stderr)
			}
			eventually(t, "no ban", func() bool { // The instance may know the refusal for deny_cache.
				resp, err := http.DefaultClient.Do(asLoginClient(t, instances[0]))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				return resp.Header.Get("RateLimit-Policy") == `"login";q=5;w=3600`
			})
		})
	}
}

// asLoginClient returns a request of the client a.
func asLoginClient(t *testing.T, i *instance) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Proxy+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client-Id", "a")
	return req
}
