package acceptance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// banned is a ban in the output of headgate ctl bans --json.
type banned struct {
	ID     string    `json:"id"`
	Rule   string    `json:"rule"`
	Key    string    `json:"key"`
	Shadow bool      `json:"shadow"`
	Until  time.Time `json:"until"`
}

// bansOf lists the bans of an instance.
func bansOf(t *testing.T, i *instance) []banned {
	t.Helper()
	status, text, stderr := call(t, "ctl", "bans", "--json", "--admin", i.Admin)
	var list struct {
		Now  time.Time `json:"now"`
		More bool      `json:"more"`
		Bans []banned  `json:"bans"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 0 {
		t.Fatalf("headgate ctl bans --json: status %d, %v: %s%s", status, err, text, stderr)
	}
	if list.More || time.Since(list.Now).Abs() > patience {
		t.Errorf("now is %v, more %v", list.Now, list.More)
	}
	return list.Bans
}

const banConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: all}
rules:
  - name: login
    match: {path: /login}
    key: [header:X-User]
    limits: ["100/1h"]
    on_exceed: {action: reject, status: 403}
    ban: {after: "5/3s", for: 1s}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestBanBeginsAndEnds: the sixth attempt within three seconds starts a ban. The ban ends one
// second after these three seconds, also if the client continues.
func TestBanBeginsAndEnds(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, banConfiguration, behind.URL)
	ask := func(user string) reply {
		answer, _ := get(t, "http://"+i.Proxy+"/login", "X-User", user)
		return answer
	}
	began := time.Now()
	for n := range 5 {
		if got := ask("a"); got.StatusCode != http.StatusOK {
			t.Fatalf("attempt %d is answered with %d", n+1, got.StatusCode)
		}
	}
	got := ask("a")
	if elapsed := time.Since(began); elapsed > 3*time.Second {
		t.Fatalf("six attempts took %v: the machine is too busy for this test to say anything", elapsed)
	}
	if got.StatusCode != http.StatusForbidden || got.Header.Get("Retry-After") != "4" {
		t.Errorf("attempt 6 is answered with %d, Retry-After %q, want 403 and 4", got.StatusCode, got.Header.Get("Retry-After"))
	}
	if got := ask("b"); got.StatusCode != http.StatusOK {
		t.Errorf("another user is answered with %d", got.StatusCode)
	}
	var first int64
	eventually(t, "the first decision in the log", func() bool {
		for _, line := range i.lines() {
			if line.Msg == "decision" {
				first = line.At
				return true
			}
		}
		return false
	})
	list := bansOf(t, i)
	if len(list) != 1 || list[0].Rule != "login" || list[0].Shadow || list[0].Until.UnixNano() != first+int64(4*time.Second) {
		t.Errorf("the bans are %+v, want one until %v", list, time.Unix(0, first).UTC().Add(4*time.Second))
	}
	eventually(t, "the ban to end", func() bool { return ask("a").StatusCode == http.StatusOK })
	if elapsed := time.Since(began); elapsed < 4*time.Second {
		t.Errorf("the ban ended %v after the first attempt, want at least 4s", elapsed)
	}
	if list := bansOf(t, i); len(list) != 0 {
		t.Errorf("after its end the ban is listed: %+v", list)
	}
	if n := decisions(t, i, "login", "enforce", "deny", "banned"); n < 2 {
		t.Errorf("%v refusals are counted as banned, want 2 and more", n)
	}
}

const liftConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: scrape
    match: {path: /scrape}
    key: [ip, header:X-Client-Id]
    limits: ["1000/1d"]
    on_exceed: {action: redirect, location: /slow-down}
    ban: {after: "3/1h", for: 1d}
  - {name: trial, match: {path: /scrape}, key: [ip], limits: ["2/1h"], ban: {for: 1h}, mode: shadow}
  - name: less
    match: {path: /less}
    key: [all]
    limits: ["1/1h"]
    on_exceed: {action: degrade, header: X-Level, value: low}
    ban: {after: "2/1h", for: 1h}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestBansAreListedAndLifted: the operator sees each ban with its rule, its remaining time and
// its mode, and lifts a ban by ID.
func TestBansAreListedAndLifted(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, liftConfiguration, behind.URL)
	if _, out, _ := call(t, "ctl", "bans", "--admin", i.Admin); out != "no bans\n" {
		t.Errorf("without a ban, headgate ctl bans says %q", out)
	}
	a, evil := with("X-Client-Id: a"), with("X-Client-Id: \u009b2J\u202ex\"y")
	walk(t, "http://"+i.Proxy, []step{
		{times: 3, path: "/scrape", args: a, want: 200},
		{times: 2, path: "/scrape", args: a, want: 302, tells: []string{"Location: /slow-down", "Retry-After: 86400"}},
		{times: 3, path: "/scrape", args: evil, want: 200},
		{path: "/scrape", args: evil, want: 302},
		{path: "/less", want: 200, seen: []string{"X-Level:"}},
		{times: 3, path: "/less", want: 200, seen: []string{"X-Level: low"}}, // this ban degrades and does not refuse
	})
	list := bansOf(t, i)
	ids := map[string]string{}
	for _, b := range list {
		ids[b.Rule+" "+b.Key] = b.ID
	}
	if len(list) != 4 || list[0].Rule != "less" || list[1].Rule != "scrape" || list[3].Rule != "trial" || !list[3].Shadow || list[1].Shadow {
		t.Fatalf("the bans are %+v, want those of less, twice scrape and, in shadow, trial", list)
	}
	status, table, _ := call(t, "ctl", "bans", "--admin", i.Admin)
	for _, want := range []string{
		`(?m)^ID +ENDS IN +RULE +KEY$`, `(?m)^[0-9A-Za-z_-]+ +(24h59m|25h0m)\d+s +scrape +.*127\.0\.0\.1.*a`,
		`(?m)^[0-9A-Za-z_-]+ +(1h59m|2h0m)\d+s +trial \(shadow\) +.*127\.0\.0\.1`, `(?m)^[0-9A-Za-z_-]+ +(1h59m|2h0m)\d+s +less +`,
	} {
		if status != 0 || !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("the table lacks %s:\n%s", want, table)
		}
	}
	if strings.ContainsAny(table, "\u009b\u202e") {
		t.Errorf("what a client sent reaches the operator's terminal: %q", table)
	}
	for key, id := range ids {
		if status, out, stderr := call(t, "ctl", "bans", "lift", id, "--admin", i.Admin); status != 0 || out != id+" is lifted\n" {
			t.Errorf("lifting the ban of %s: status %d, %q %q", key, status, out, stderr)
		}
	}
	walk(t, "http://"+i.Proxy, []step{
		{times: 3, path: "/scrape", args: a, want: 200}, // its attempts are forgotten
		{path: "/scrape", args: a, want: 302},           // and counted from 0
		{path: "/less", want: 200, seen: []string{"X-Level: low"}},
	})
	for _, unknown := range []string{"0123456789abcdef", "nonsense", list[0].ID} {
		status, _, stderr := call(t, "ctl", "bans", "lift", unknown, "--admin", i.Admin)
		if status != 1 || !strings.Contains(stderr, "no such ban") {
			t.Errorf("lifting %s: status %d, %q, want 1 and no such ban", unknown, status, stderr)
		}
	}
	if got := ask(t, "-X", "DELETE", "http://"+i.Admin+"/api/v1/bans/0123456789abcdef"); got.status != http.StatusNotFound {
		t.Errorf("DELETE of an unknown ban is %d, want 404", got.status)
	}
	one := bansOf(t, i)
	rebound := ask(t, "-X", "DELETE", "-H", "Host: evil.example.com", "http://"+i.Admin+"/api/v1/bans/"+one[0].ID)
	if rebound.status != http.StatusForbidden || len(bansOf(t, i)) != len(one) {
		t.Errorf("a page of another name may lift bans: %d", rebound.status)
	}
	if got := ask(t, "-X", "DELETE", "http://"+i.Admin+"/api/v1/bans/"+one[0].ID); got.status != http.StatusOK {
		t.Errorf("DELETE of a ban is %d, want 200", got.status)
	}
	if got := ask(t, "http://"+i.Health+"/api/v1/bans"); got.status != http.StatusNotFound {
		t.Errorf("the health listener lists bans: %d", got.status)
	}
}
