package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// fleetFiles writes the configurations of three proxies that share a store and know each other, and gives the addresses of their admin
// listeners. The ports are free.
func fleetFiles(t *testing.T, rules string) (paths, addresses []string) {
	t.Helper()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	server := redis.Start(t)
	var sockets [6]net.Listener // open at the same time, so that all ports differ
	for n := range sockets {
		socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		sockets[n] = socket
		addresses = append(addresses, socket.Addr().String())
	}
	for _, socket := range sockets {
		_ = socket.Close()
	}
	addresses, fronts := addresses[:3], addresses[3:] // A restart keeps the ports.
	for n, at := range addresses {
		paths = append(paths, file(t, fmt.Sprintf(`version: 1
instance: hg-%d
store: redis://%s
store_timeout: 1s
log: {keys: plain}
rules: %s
proxy: {listen: %q, upstream: %q}
admin: {listen: %q, health: off, peers: ["%s"]}
`, n+1, server.Addr, rules, fronts[n], behind.URL, at, strings.Join(addresses, `", "`))))
	}
	return paths, addresses
}

// startThree starts the proxies of fleetFiles. list has their admin listeners.
func startThree(t *testing.T, rules string) (all [3]*instance, list string) {
	t.Helper()
	paths, addresses := fleetFiles(t, rules)
	for n := range all {
		all[n] = launch(t, paths[n])
	}
	return all, strings.Join(addresses, ",")
}

func liveOf(t *testing.T, i *instance) *admin.Live {
	t.Helper()
	r, text := get(t, "http://"+i.Admin+"/api/v1/live")
	l := new(admin.Live)
	if err := json.Unmarshal([]byte(text), l); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("/api/v1/live answers %d, %v", r.StatusCode, err)
	}
	return l
}

// TestFleetUnderLoad: three proxies under load, of which one is stopped and goes on, and one restarts. No rate of the fleet is ever above
// the true one; a stopped instance is a fault within 3 seconds, and none after it goes on.
func TestFleetUnderLoad(t *testing.T) {
	t.Parallel()
	all, _ := startThree(t, `[{name: search, key: ["header:X-Client-Id"], limits: [5/1s]}]`)
	const perSecond = 10
	// A window is at least one second. At its edges it may have one more request of each instance.
	const most = len(all)*perSecond + 2*len(all)
	stop := make(chan struct{})
	defer close(stop)
	for n := range all {
		url := "http://" + all[n].Proxy + "/"
		go func() {
			client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			ticker := time.NewTicker(time.Second / perSecond)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
				}
				if r, err := client.Get(url); err == nil {
					_ = r.Body.Close()
				}
			}
		}()
	}
	faulty := func(l *admin.Live) bool {
		return len(l.Attention) > 0 && l.Attention[0].About == "instance" && l.Attention[0].Level == admin.LevelFault
	}
	look := func() *admin.Live {
		l := liveOf(t, all[0])
		if l.Totals.Requests > float64(most) || l.Totals.Refused > l.Totals.Requests+1 {
			t.Errorf("the fleet has %v requests/s and refuses %v/s, and at most %d are sent", l.Totals.Requests, l.Totals.Refused, most)
		}
		return l
	}
	eventually(t, "the figures of all", func() bool {
		l := look()
		return len(l.Instances) == 3 && !faulty(l) && l.Totals.Requests > perSecond
	})
	signal := func(s syscall.Signal) {
		if err := all[1].command.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	began := time.Now()
	eventually(t, "the fault", func() bool { return faulty(look()) })
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the fault appears after %s", took)
	}
	if l := look(); l.Attention[0].Name != "hg-2" || !strings.HasPrefix(l.Sentence, "Over 2 of 3 instances: ") {
		t.Errorf("the fleet says %q: %+v", l.Sentence, l.Attention[0])
	}
	signal(syscall.SIGCONT)
	eventually(t, "the end of the fault", func() bool { return !faulty(look()) })
	all[2].stop()
	eventually(t, "the fault of the restart", func() bool { return faulty(look()) })
	launch(t, all[2].path)
	eventually(t, "the end of the restart", func() bool { return !faulty(look()) })
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		look()
	}
}

// onCall counts the commands of a case.
type onCall struct {
	t    *testing.T
	list string
	used int
}

// do is a command over all instances.
func (c *onCall) do(args ...string) string {
	c.t.Helper()
	c.used++
	status, out, stderr := call(c.t, append([]string{"ctl", "--admin", c.list}, args...)...)
	if status != 0 {
		c.t.Fatalf("ctl %v: status %d: %s%s", args, status, out, stderr)
	}
	return out
}

// TestOnCall has what an operator must do at night over three instances, each with at most two commands.
func TestOnCall(t *testing.T) {
	t.Parallel()
	all, list := startThree(t, `
  - {name: search, match: {path: /search}, key: ["header:X-Client-Id"], limits: [3/1d], algorithm: fixed_window}
  - {name: login, match: {path: /login}, key: ["header:X-Client-Id"], limits: [2/1d], algorithm: fixed_window, ban: {after: 1/1h, for: 1h}}`)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, c *onCall)
	}{
		{"why, which instance, top", func(t *testing.T, c *onCall) {
			t.Helper()
			if n := passes(t, all[1], "acme", "/search", 9); n != 3 {
				t.Fatalf("%d requests pass", n)
			}
			if out := c.do("why", "GET /search", "-H", "X-Client-Id: acme"); !strings.Contains(out, "search") || !strings.Contains(out, "3/1d") {
				t.Errorf("why prints:\n%s", out)
			}
			if out := c.do("top", "search"); !regexp.MustCompile(`6 +0 +search +header:X-Client-Id="?acme"? +hg-2 6`).MatchString(out) {
				t.Errorf("top prints:\n%s", out)
			}
		}},
		{"lift a ban", func(t *testing.T, c *onCall) {
			t.Helper()
			passes(t, all[2], "umbrella", "/login", 4)
			id := regexp.MustCompile(`(?m)^(\S+) .* login +\S*umbrella`).FindStringSubmatch(c.do("bans"))
			if id == nil {
				t.Fatal("the ban is not listed")
			}
			if out := c.do("bans", "lift", id[1]); !strings.Contains(out, "lifted") {
				t.Errorf("lift prints:\n%s", out)
			}
		}},
		{"all to shadow, and back", func(t *testing.T, c *onCall) {
			t.Helper()
			c.do("mode", "shadow")
			for n := range all {
				if passed := passes(t, all[n], "acme", "/search", 2); passed != 2 {
					t.Errorf("%d requests pass in shadow at instance %d", passed, n+1)
				}
			}
			c.do("mode", "file")
			for n := range all {
				if passed := passes(t, all[n], "acme", "/search", 2); passed != 0 {
					t.Errorf("%d requests pass at instance %d", passed, n+1)
				}
			}
		}},
		{"ban now", func(t *testing.T, c *onCall) {
			t.Helper()
			c.do("key", "ban", "search", "evil", "--for", "1h")
			eventually(t, "the ban in all instances", func() bool {
				return passes(t, all[0], "evil", "/search", 1)+passes(t, all[1], "evil", "/search", 1)+passes(t, all[2], "evil", "/search", 1) == 0
			})
		}},
		{"raise one customer for an hour", func(t *testing.T, c *onCall) {
			t.Helper()
			c.do("key", "limit", "search", "acme", "--limits", "50/1d", "--for", "1h")
			for n := range all {
				if passed := passes(t, all[n], "acme", "/search", 2); passed != 2 {
					t.Errorf("%d requests pass at instance %d", passed, n+1)
				}
			}
		}},
	} {
		count := &onCall{t: t, list: list}
		c.run(t, count)
		if count.used > 2 || count.used == 0 {
			t.Errorf("%s takes %d commands", c.name, count.used)
		}
	}
}
