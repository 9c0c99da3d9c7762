package acceptance

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// outageConfiguration has one rule for each fallback. Two limits have windows longer than a
// test, so their admitted units only add up. The third has a window of a second.
const outageConfiguration = `version: 1
store: "%s"
store_timeout: %s
deny_cache: 0s
local_share: 50%%
breaker: {max_probe: 500ms}
max_memory: 16MiB
log: {decisions: none, access: json, access_file: "%s"}
%s
rules:
  - {name: allow, match: {path: /allow/*}, key: [path], algorithm: %s, limits: ["10/30d"], fallback: allow}
  - {name: deny, match: {path: /deny/*}, key: [path], algorithm: token_bucket, limits: ["10/300d"], fallback: deny}
  - {name: local, match: {path: /local/*}, key: [path], algorithm: fixed_window, limits: ["3/1s"], fallback: local}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// limitOf gives the limit of a rule of outageConfiguration: in total, or in a second.
func limitOf(rule string) int {
	if rule == "local" {
		return 3
	}
	return 10
}

// outage is an instance under load with a failing store.
type outage struct {
	t    *testing.T
	i    *instance
	log  string
	load *openLoop
	// control has requests that need no store. They go on as long as the load.
	control *openLoop
}

// circumstances are the parameters of an outage.
type circumstances struct {
	store   string // the address of the store
	timeout time.Duration
	// more has further top-level settings of the configuration.
	more string
	// log is the algorithm of the first rule; "" is sliding_log.
	log string
	// keys is the number of keys of each rule, and rate the number of requests a second in total.
	keys, rate int
}

func (c circumstances) paths() []string {
	var paths []string
	for k := range c.keys {
		for _, rule := range []string{"allow", "deny", "local"} {
			paths = append(paths, fmt.Sprintf("/%s/%d", rule, k))
		}
	}
	return paths
}

// open starts the instance; begin starts the load.
func (c circumstances) open(t *testing.T) *outage {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(upstream.Close)
	o := &outage{t: t, log: filepath.Join(t.TempDir(), "access.log")}
	o.i = launch(t, file(t, fmt.Sprintf(outageConfiguration, c.store, c.timeout, o.log, c.more, cmp.Or(c.log, "sliding_log"), upstream.URL)+adminAnywhere))
	return o
}

// begin starts the load. It returns when each key had two requests and no fallback decides.
func (o *outage) begin(c circumstances) {
	o.t.Helper()
	o.control = startLoad(o.t, "http://"+o.i.Proxy, controlRate, []string{controlPath})
	o.load = startLoad(o.t, "http://"+o.i.Proxy, c.rate, c.paths())
	eventually(o.t, "the first answers", func() bool { return o.load.answered() >= 2*3*c.keys })
}

// series adds up the series of a metric that have all the labels.
func (o *outage) series(name string, labels ...string) (sum float64) {
	o.t.Helper()
	_, text := get(o.t, "http://"+o.i.Health+"/metrics")
	for line := range strings.Lines(text) {
		rest, ours := strings.CutPrefix(line, "headgate_"+name)
		if !ours || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		has := func(label string) bool { return strings.Contains(rest, label) }
		if slices.ContainsFunc(labels, func(label string) bool { return !has(label) }) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &value); err != nil {
			o.t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// fallbacks gives the number of fallback decisions.
func (o *outage) fallbacks() float64 {
	o.t.Helper()
	return o.series("fallbacks_total")
}

// fallsBack waits until fallbacks decide.
func (o *outage) fallsBack() {
	o.t.Helper()
	before := o.fallbacks()
	eventually(o.t, "a fallback", func() bool { return o.fallbacks() > before })
}

// calm waits until no fallback has decided for a while.
func (o *outage) calm() {
	o.t.Helper()
	const quiet = time.Second
	last, since := o.fallbacks(), time.Now()
	eventually(o.t, "the end of fallbacks", func() bool {
		if now := o.fallbacks(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet
	})
}

// untilUsed waits until each key had more requests than its limit.
func (o *outage) untilUsed() {
	o.t.Helper()
	keys := len(o.load.paths)
	eventually(o.t, "more requests than the limits admit", func() bool { return o.load.answered() > keys*(limitOf("")+2) })
}

// end stops the load and the instance, and gives the ledger.
func (o *outage) end() *ledger {
	o.t.Helper()
	histogram := "above 100ms"
	if bound := decisionTimes(o.t, o.i).percentile(99.9); bound < time.Second {
		histogram = bound.String()
	}
	given := int(o.series("store_given_up_total"))
	l := &ledger{t: o.t, histogram: histogram, given: given, shots: o.load.end(), log: o.i.text()}
	l.keys, l.control = map[string]*account{}, lateness{}
	o.control.end()
	if status := o.i.stop(); status != 0 {
		o.t.Errorf("exit status %d\n%s", status, o.i.text())
	}
	l.read(o.log)
	l.complete()
	return l
}
