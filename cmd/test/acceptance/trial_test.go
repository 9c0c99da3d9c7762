package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// trialsOf gives the trials of an instance.
func trialsOf(t *testing.T, i *instance) []admin.Trial {
	t.Helper()
	status, out, stderr := call(t, "ctl", "trial", "--json", "--admin", i.Admin)
	var all admin.Trials
	if err := json.Unmarshal([]byte(out), &all); err != nil || status != 0 {
		t.Fatalf("ctl trial: status %d, %v: %s%s", status, err, out, stderr)
	}
	return all.Trials
}

// trialOf is a command of headgate ctl trial that must succeed.
func trialOf(t *testing.T, i *instance, args ...string) string {
	t.Helper()
	status, out, stderr := call(t, append([]string{"ctl", "trial", "--admin", i.Admin}, args...)...)
	if status != 0 {
		t.Fatalf("ctl trial %v: status %d: %s%s", args, status, out, stderr)
	}
	return out
}

// TestTrialsOfSevenAndThree: beside a limit of five, trials of seven and three refuse exactly three and seven of ten requests, and change
// nothing for the clients. They survive a reload, end by themselves, and are in no list of refusals.
func TestTrialsOfSevenAndThree(t *testing.T) {
	t.Parallel()
	server := redis.Start(t)
	for name, settings := range map[string]string{
		"memory, together": "", "memory, independent": "evaluate: independent\n",
		"redis, together":    "store: redis://" + server.Addr + "\nstore_timeout: 10s\nnamespace: together\n",
		"redis, independent": "store: redis://" + server.Addr + "\nstore_timeout: 10s\nnamespace: independent\nevaluate: independent\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			defer behind.Close()
			i := start(t, "version: 1\n"+settings+`log: {keys: plain, decisions: all}
rules:
  - {name: search, key: [header:X-Client-Id], limits: ["5/1d"], algorithm: fixed_window}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
			for _, limit := range []string{"7/1d", "3/1d"} {
				out := trialOf(t, i, "start", "search", limit, "--reason", "the customer asks for more")
				if !strings.Contains(out, "tries "+limit+" beside 5/1d of rule search") || !strings.Contains(out, "undo: headgate ctl trial stop search.trial-") {
					t.Errorf("start prints:\n%s", out)
				}
			}
			refused := 0
			for n := range 10 {
				if n == 5 {
					i.hangup(t)
				}
				if r, _ := get(t, "http://"+i.Proxy, "X-Client-Id", "acme"); r.StatusCode == http.StatusTooManyRequests {
					refused++
				}
			}
			got := map[string][2]uint64{}
			for _, one := range trialsOf(t, i) {
				got[one.Limits[0]] = [2]uint64{one.Tried.Refused, one.Present.Refused}
			}
			if refused != 5 || fmt.Sprint(got) != fmt.Sprint(map[string][2]uint64{"7/1d": {3, 5}, "3/1d": {7, 5}}) {
				t.Errorf("%d refused, and the trials say %v", refused, got)
			}
			_, top, _ := call(t, "ctl", "top", "--admin", i.Admin)
			_, status, _ := call(t, "ctl", "status", "--admin", i.Admin)
			if strings.Contains(top, ".trial-") || !strings.Contains(top, "5 refusals of all keys") || !strings.Contains(status, "WOULD REFUSE") {
				t.Errorf("the lists are:\n%s\n%s", top, status)
			}
			if n := strings.Count(i.text(), `"rule":"search.trial-`); n > 0 || !strings.Contains(i.text(), `"action":"trial"`) {
				t.Errorf("the log has %d refusals of trials, or no audit:\n%s", n, i.text())
			}
			out := trialOf(t, i, "stop", "search.trial-7-1d")
			if !strings.Contains(out, "now 5/1d refuses 50 % (5, ") || !strings.Contains(out, "7/1d would refuse 30 % (3, ") ||
				!strings.Contains(out, "undo: headgate ctl trial start search 7/1d --for=") {
				t.Errorf("stop prints:\n%s", out)
			}
			trialOf(t, i, "start", "search", "3/1d", "--for", "1s") // A further start sets the end.
			eventually(t, "the end of the trial", func() bool { return len(trialsOf(t, i)) == 0 })
			if out := trialOf(t, i); out != "no trials\n" {
				t.Errorf("the list is %q", out)
			}
		})
	}
}

// TestTrialFaults: what no trial can be, with the advice.
func TestTrialFaults(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, `version: 1
plans: {free: {quotas: {calls: [{limit: 10/1d}]}}}
default_plan: free
rules:
  - {name: search, key: [header:X-Client-Id], limits: ["5/1d"], algorithm: fixed_window, ban: {after: 20/1d, for: 1h}}
  - {name: off, key: [ip], limits: ["5/1d"], mode: off}
  - {name: slots, key: [ip], in_flight: 5}
  - {name: metered, key: [header:X-Api-Key], quota: calls}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
	for args, want := range map[string]string{
		"start serch 7/1d": "did you mean search?", "start off 7/1d": "rule off is off", "start slots 7/1d": "has no limits of units",
		"start metered 7/1d": "quota calls", "start search 7/x": "period", "start search 7/1d 9/1d": "appears twice",
		"start search 7/1d --for 25h": "1s to 24h", "start search 7/1d --burst 9": "burst is not used by fixed_window", "stop nothing": "no trial has the name",
	} {
		args := append([]string{"ctl", "trial", "--admin", i.Admin}, strings.Fields(args)...)
		if status, _, stderr := call(t, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	out := trialOf(t, i, "start", "search", "7/1d", "--dry-run")
	if !strings.Contains(out, "dry run: search.trial-7-1d would try 7/1d beside 5/1d of rule search for 10m0s") ||
		!strings.Contains(out, "does without ban") || len(trialsOf(t, i)) != 0 {
		t.Errorf("the dry run prints:\n%s", out)
	}
	for n := range 8 {
		trialOf(t, i, "start", "search", fmt.Sprint(10+n, "/1d"))
	}
	if status, _, stderr := call(t, "ctl", "trial", "--admin", i.Admin, "start", "search", "90/1d"); status == 0 || !strings.Contains(stderr, "8 trials") {
		t.Errorf("a ninth trial: %s", stderr)
	}
}

// TestTrialOnLiveTraffic: on the traffic of several clients at once, a trial passes what a bucket of its limit passes. The noise is what
// the bucket fills while the first and the last request are on their way, and one unit.
func TestTrialOnLiveTraffic(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, `version: 1
rules:
  - {name: search, key: [all], limits: ["20/1s"], algorithm: token_bucket}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
	trialOf(t, i, "start", "search", "25/1s")
	const rate, clients, each = 25, 4, 60
	var refused atomic.Int64
	var mu sync.Mutex
	var longest, last time.Duration // of all requests, and when the last answer came
	begin := time.Now()             // before the first request: the bucket begins full
	var busy sync.WaitGroup
	for range clients {
		busy.Go(func() {
			for range each {
				sent := time.Now()
				if r, _ := get(t, "http://"+i.Proxy); r.StatusCode == http.StatusTooManyRequests {
					refused.Add(1)
				}
				took := time.Since(sent)
				mu.Lock()
				longest, last = max(longest, took), max(last, time.Since(begin))
				mu.Unlock()
				<-time.After(50*time.Millisecond - took) // 80 requests/s together: more than both limits.
			}
		})
	}
	busy.Wait()
	took := last.Seconds()
	one := trialsOf(t, i)[0]
	if one.Tried.Decided != clients*each || one.Present.Decided != clients*each || int64(one.Present.Refused) != refused.Load() {
		t.Errorf("%d refused, and the trial says %+v", refused.Load(), one)
	}
	passed, want := float64(one.Tried.Decided-one.Tried.Refused), min(rate+rate*took, clients*each)
	noise := 1 + rate*2*longest.Seconds()
	if passed > want+1 || passed < want-noise && took < 2*each*0.05 { // A machine that stalls lets units of a full bucket go.
		t.Errorf("the trial passes %.0f of %d in %.2f s, want %.1f within %.1f", passed, one.Tried.Decided, took, want, noise)
	}
	t.Logf("now refuses %.0f %%, would refuse %.0f %%, noise %.1f units", one.Present.Part*100, one.Tried.Part*100, noise)
}
