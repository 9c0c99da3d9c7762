package acceptance

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestBanIsLiftedThroughAnotherInstance: a ban that one instance lists is lifted through another one on the same store, and is then in
// force in none.
func TestBanIsLiftedThroughAnotherInstance(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{"redis": "redis://" + redis.Start(t).Addr, "memcached": "memcached://" + memcached.Start(t).Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			defer behind.Close()
			text := fmt.Sprintf(`version: 1
store: %s
store_timeout: 5s
deny_cache: 0
rules:
  - {name: login, key: [header:X-Client-Id], limits: ["1000/1d"], ban: {after: "2/1h", for: 1h}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`, store, behind.URL) + adminAnywhere
			first, second := launch(t, file(t, text)), launch(t, file(t, text))
			a := with("X-Client-Id: a")
			walk(t, "http://"+first.Proxy, []step{{times: 2, args: a, want: 200}, {args: a, want: 429}})
			list := bansOf(t, first)
			if len(list) != 1 || len(bansOf(t, second)) != 0 {
				t.Fatalf("the bans are %+v", list)
			}
			id := list[0].ID
			if status, out, stderr := call(t, "ctl", "bans", "lift", id, "--admin", second.Admin); status != 0 || out != id+" is lifted\n" {
				t.Errorf("status %d, %q %q", status, out, stderr)
			}
			walk(t, "http://"+first.Proxy, []step{{times: 2, args: a, want: 200}})
			// One attempt before a ban is no ban.
			if status, _, stderr := call(t, "ctl", "bans", "lift", id, "--admin", second.Admin); status != 1 || !strings.Contains(stderr, "no such ban") {
				t.Errorf("status %d, %q", status, stderr)
			}
			walk(t, "http://"+first.Proxy, []step{{args: a, want: 429}})
		})
	}
}
