package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// keyDocument has the fields of headgate ctl key get --json that the tests read.
type keyDocument struct {
	ID     string `json:"id"`
	Key    string `json:"key"`
	Shared bool   `json:"shared"`
	Ban    *struct {
		Until    time.Time `json:"until"`
		Operator bool      `json:"operator"`
		Reason   string    `json:"reason"`
	} `json:"ban"`
	Limits []struct {
		Used      int64 `json:"used"`
		Remaining int64 `json:"remaining"`
	} `json:"limits"`
}

// keyFleet is two servers of one configuration.
type keyFleet struct {
	t   *testing.T
	all [2]*instance
}

func startKeyFleet(t *testing.T, store string) *keyFleet {
	t.Helper()
	text := fmt.Sprintf(`version: 1
store: %s
store_timeout: 5s
log: {keys: plain}
rules:
  - {name: api, key: [header:X-Client-Id, ip], limits: ["3/1h"], algorithm: fixed_window}
  - {name: login, match: {path: /login}, key: [header:X-Client-Id], limits: ["900/1h"], ban: {after: "1000/1h", for: 1h}}
domains: {shop: {descriptors: [{key: user, limits: ["2/1h"]}]}}
server: {http: "127.0.0.1:0", grpc: "127.0.0.1:0"}
`, store) + adminAnywhere
	f := &keyFleet{t: t}
	for n := range f.all {
		f.all[n] = launchServer(t, file(t, text))
	}
	return f
}

// decide decides a request of a client in an instance.
func (f *keyFleet) decide(n int, client, more string) (allowed bool) {
	f.t.Helper()
	body := fmt.Sprintf(`{"path": "/x", "ip": "192.0.2.1", "headers": {"X-Client-Id": %q}%s}`, client, more)
	got := ask(f.t, "-d", body, "http://"+f.all[n].HTTP+"/v1/decide")
	var answer struct {
		Verdict string `json:"verdict"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 {
		f.t.Fatalf("a decision: %d %s", got.status, got.body)
	}
	return answer.Verdict == "allow"
}

// ctl runs headgate ctl key for the addresses of some instances.
func (f *keyFleet) ctl(wanted int, instances []int, args ...string) string {
	f.t.Helper()
	var addresses []string
	for _, n := range instances {
		addresses = append(addresses, f.all[n].Admin)
	}
	status, out, faults := call(f.t, append([]string{"ctl", "key", "--admin", strings.Join(addresses, ",")}, args...)...)
	if status != wanted {
		f.t.Errorf("headgate ctl key %q: status %d, want %d\n%s%s", args, status, wanted, out, faults)
	}
	return out + faults
}

func (f *keyFleet) get(n int, args ...string) (k keyDocument) {
	f.t.Helper()
	text := f.ctl(0, []int{n}, append([]string{"get", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	return k
}

// TestKeyOfOneClient: headgate ctl key reads, resets, bans and unbans the key of a client, in instances with memories of their own,
// with Redis, and with Memcached.
func TestKeyOfOneClient(t *testing.T) {
	t.Parallel()
	stores := map[string]string{"memory": "memory", "redis": "redis://" + redis.Start(t).Addr, "memcached": "memcached://" + memcached.Start(t).Addr}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startKeyFleet(t, store)
			shared := name != "memory"
			f.resetStory(shared)
			f.banStory(shared)
			f.refusals()
		})
	}
}

func (f *keyFleet) resetStory(shared bool) {
	f.t.Helper()
	key := []string{"api", "acme", "192.0.2.1"}
	for range 3 {
		if !f.decide(0, "acme", `, "peek": true`) || !f.decide(0, "acme", "") {
			f.t.Error("a request within the limit is refused")
		}
	}
	if f.decide(0, "acme", `, "peek": true`) || f.decide(0, "acme", "") {
		f.t.Error("a request above the limit is allowed")
	}
	k := f.get(0, key...)
	if k.Key != `api header:X-Client-Id="acme" ip=192.0.2.1` || k.Shared != shared || k.Limits[0].Used != 3 || k.Limits[0].Remaining != 0 {
		f.t.Errorf("the key is %+v", k)
	}
	if other := f.get(1, key...); shared != (other.Limits[0].Used == 3) {
		f.t.Errorf("the other instance reads %+v", other)
	}
	text := f.ctl(0, []int{0}, append([]string{"reset", "--dry-run"}, key...)...)
	if !strings.Contains(text, "3 units of 3/1h were used") || !strings.Contains(text, "dry run") || f.get(0, key...).Limits[0].Used != 3 {
		f.t.Errorf("a dry run prints %q", text)
	}
	text = f.ctl(0, []int{0, 1}, append([]string{"reset", "--reason", "ticket 7"}, key...)...)
	once := strings.Contains(text, f.all[1].Admin+"\nhas a shared store, as "+f.all[0].Admin+" has\n")
	if !strings.Contains(text, "3 units of 3/1h were used") || once != shared || strings.Contains(text, "in this instance alone") == shared {
		f.t.Errorf("a reset prints %q", text)
	}
	if !f.decide(0, "acme", "") {
		f.t.Error("after the reset, the key is refused")
	}
	f.wantAudit("reset", "api header:X-Client-Id=\\\"acme\\\" ip=192.0.2.1", "ticket 7")
}

func (f *keyFleet) banStory(shared bool) {
	f.t.Helper()
	for _, name := range [][]string{{"api", "evil", "192.0.2.1"}, {"login", "evil"}} {
		f.ctl(0, []int{0}, append([]string{"ban", "--for", "1h", "--reason", "abuse"}, name...)...)
		k := f.get(0, name...)
		if k.Ban == nil || !k.Ban.Operator || k.Ban.Reason != "abuse" || time.Until(k.Ban.Until) < 50*time.Minute {
			f.t.Errorf("%s: the ban is %+v", name, k.Ban)
		}
		if name[0] == "api" && f.decide(0, "evil", "") {
			f.t.Error("a banned key is allowed")
		}
		if other := f.get(1, name...); shared != (other.Ban != nil) {
			f.t.Errorf("%s: the other instance reads the ban %+v", name, other.Ban)
		}
		if shared && name[0] == "api" {
			eventually(f.t, "the other instance to follow the ban", func() bool { return !f.decide(1, "evil", `, "peek": true`) })
		}
		if list := bansOf(f.t, f.all[0]); len(list) != 1 || list[0].ID != k.ID {
			f.t.Errorf("%s: the bans are %+v", name, list)
		}
		through := 0
		if shared {
			through = 1
		}
		f.ctl(0, []int{through}, append([]string{"unban", "--reason", "was a test"}, name...)...)
		if k := f.get(0, name...); k.Ban != nil {
			f.t.Errorf("%s: after its end the ban is %+v", name, k.Ban)
		}
		eventually(f.t, "the end of the ban", func() bool { return name[0] != "api" || f.decide(0, "evil", `, "peek": true`) })
		if shared { // The other instances list the ban until its end.
			f.ctl(0, []int{0}, append([]string{"unban"}, name...)...)
		}
	}
	f.wantAudit("ban", "evil", "abuse")
}

// refusals: what cannot be done says why.
func (f *keyFleet) refusals() {
	f.t.Helper()
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{1, `no rule has the name "ap": did you mean api?`, []string{"get", "ap", "acme", "192.0.2.1"}},
		{2, "write a value for each of its parts: header:X-Client-Id ip", []string{"reset", "api", "acme"}},
		{2, "write (missing) for requests without this value", []string{"reset", "api", "", "192.0.2.1"}},
		{2, "--for is missing or is no time", []string{"ban", "api", "acme", "192.0.2.1"}},
		{2, "write a time from 1s to 367d", []string{"ban", "--for", "1ms", "api", "acme", "192.0.2.1"}},
		{2, "write NAME=VALUE", []string{"get", "--domain", "shop", "user"}},
		{1, "has no limit for this descriptor", []string{"get", "--domain", "shop", "other=1"}},
		{0, `shop user="42"`, []string{"get", "--domain", "shop", "user=42"}},
		{0, `header:X-Client-Id=(missing)`, []string{"get", "api", "(missing)", "192.0.2.1"}},
	} {
		if text := f.ctl(c.status, []int{0}, c.args...); !strings.Contains(text, c.want) {
			f.t.Errorf("%q prints %q, want %q", c.args, text, c.want)
		}
	}
	got := ask(f.t, "-d", `{"rule": "api", "dryrun": true}`, "http://"+f.all[0].Admin+"/api/v1/key/reset")
	if got.status != 400 || !strings.Contains(got.body, "dryrun") {
		f.t.Errorf("a misspelt field is answered with %d %s", got.status, got.body)
	}
}

// wantAudit looks for the line of a change in the log of the first instance.
func (f *keyFleet) wantAudit(action, key, reason string) {
	f.t.Helper()
	eventually(f.t, "the line audit of "+action, func() bool {
		for _, line := range f.all[0].lines() {
			if line.Msg == "audit" && strings.Contains(line.text, `"action":"`+action+`"`) && strings.Contains(line.text, key) &&
				strings.Contains(line.text, `"reason":"`+reason+`"`) {
				return true
			}
		}
		return false
	})
}
