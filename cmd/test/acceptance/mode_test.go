package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// modesOf runs headgate ctl mode, and gives the modes that it prints.
func modesOf(t *testing.T, i *instance, args ...string) []admin.ModeOverride {
	t.Helper()
	status, out, stderr := call(t, append([]string{"ctl", "mode", "--json", "--admin", i.Admin}, args...)...)
	var modes admin.Modes
	if err := json.Unmarshal([]byte(out), &modes); err != nil || status != 0 {
		t.Fatalf("ctl mode %v: status %d, %v: %s%s", args, status, err, out, stderr)
	}
	return modes.Modes
}

// TestModeAtRunTime: ctl mode puts everything in shadow under load without a lost request, survives a reload of the file, is shown in
// status, metrics and the log, and ends by itself.
func TestModeAtRunTime(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	i := start(t, `version: 1
rules:
  - {name: product, key: [header:X-Client-Id], limits: ["1/1h"]}
  - {name: trial, key: [header:X-Client-Id], limits: ["1/1h"], mode: shadow}
proxy: {listen: 127.0.0.1:0, upstream: %q}
`, behind.URL)
	client := func(name string) int {
		r, _ := get(t, "http://"+i.Proxy, "X-Client-Id", name)
		return r.StatusCode
	}
	client("a")
	if got := client("a"); got != http.StatusTooManyRequests {
		t.Fatalf("before the switch: status %d", got)
	}
	var load sync.WaitGroup
	stop := make(chan struct{})
	for n := range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := client(fmt.Sprint("load", n)); got != http.StatusOK && got != http.StatusTooManyRequests {
					t.Errorf("during the switch: status %d", got)
				}
			}
		})
	}
	modes := modesOf(t, i, "shadow", "--for", "1h", "--reason", "night")
	if len(modes) != 1 || modes[0].Rule != "" || modes[0].Mode != "shadow" || modes[0].Until == nil {
		t.Errorf("the modes are %+v", modes)
	}
	if got := client("a"); got != http.StatusOK {
		t.Errorf("in shadow: status %d", got)
	}
	i.hangup(t)
	if got := client("a"); got != http.StatusOK {
		t.Errorf("in shadow after a reload: status %d", got)
	}
	_, status, _ := call(t, "ctl", "status", "--admin", i.Admin)
	_, metrics := get(t, "http://"+i.Admin+"/metrics")
	if !strings.Contains(status, "MODE OF THE RUN TIME") || !strings.Contains(metrics, `headgate_mode_override{mode="shadow",rule="*"} 100`) ||
		!strings.Contains(metrics, `headgate_decisions_total{mode="enforce",reason="over_limit",rule="product",verdict="deny"}`) {
		t.Errorf("status and metrics do not show the mode:\n%s\n%s", status, metrics)
	}
	if !strings.Contains(i.text(), `"action":"mode"`) || !strings.Contains(i.text(), "night") {
		t.Errorf("no audit of the change:\n%s", i.text())
	}
	modesOf(t, i, "enforce", "product")
	if got := client("a"); got != http.StatusTooManyRequests {
		t.Errorf("enforced again, one rule: status %d", got)
	}
	if modes := modesOf(t, i, "shadow", "--for", "1s"); len(modes) != 1 {
		t.Errorf("a mode for all replaces those of rules, and there are %+v", modes)
	}
	eventually(t, "the end of the mode", func() bool { return client("a") == http.StatusTooManyRequests && len(modesOf(t, i)) == 0 })
	modesOf(t, i, "enforce") // The rule trial keeps the shadow of the file.
	if got := client("b"); got != http.StatusOK {
		t.Errorf("the first request of a client: status %d", got)
	}
	if modes := modesOf(t, i, "file"); len(modes) != 0 {
		t.Errorf("with file, there are %+v", modes)
	}
	close(stop)
	load.Wait()
	for args, want := range map[string]string{
		"shadow prodct": "did you mean product?", "loud": "mode must be enforce, shadow, or file", "shadow --percent 10": "percent is the part",
		"shadow --for 1ms": "for must be a time", "shadow --for 0s": "for must be a time",
		"enforce --percent 0": "--percent is 0: use 1 to 100", "enforce --percent -1": "--percent is -1", "enforce throttle": "no rule has the name",
	} {
		args := append([]string{"ctl", "mode", "--admin", i.Admin}, strings.Fields(args)...)
		if status, _, stderr := call(t, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

// TestModeForAPartOfTheKeys: two instances enforce for the same clients, although their rules are in another order.
func TestModeForAPartOfTheKeys(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	const product, other = `{name: product, key: [header:X-Client-Id], limits: ["1/1h"]}`, `{name: other, key: [path], limits: ["1000000/1h"]}`
	refused := func(rules string) (all []string) {
		i := start(t, "version: 1\nmode: shadow\nrules: ["+rules+"]\nproxy: {listen: 127.0.0.1:0, upstream: %q}\n", behind.URL)
		modesOf(t, i, "enforce", "--percent", "10")
		for n := range 200 {
			name := fmt.Sprint("client-", n)
			get(t, "http://"+i.Proxy, "X-Client-Id", name)
			if r, _ := get(t, "http://"+i.Proxy, "X-Client-Id", name); r.StatusCode == http.StatusTooManyRequests {
				all = append(all, name)
			}
		}
		return all
	}
	first, second := refused(product+", "+other), refused(other+", "+product)
	if len(first) < 5 || len(first) > 45 || strings.Join(first, " ") != strings.Join(second, " ") {
		t.Errorf("of 200 clients, the instances refuse\n%v\n%v", first, second)
	}
}

// TestModeOfTheFile: mode at the top weakens all rules, and a reload ends it.
func TestModeOfTheFile(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	i := start(t, "version: 1\nmode: shadow\nrules: [{name: product, key: [all], limits: [\"1/1h\"]}]\nproxy: {listen: 127.0.0.1:0, upstream: %q}\n", behind.URL)
	for range 3 {
		if r, _ := get(t, "http://"+i.Proxy); r.StatusCode != http.StatusOK {
			t.Errorf("with mode: shadow, status %d", r.StatusCode)
		}
	}
	text, err := os.ReadFile(i.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.path, []byte(strings.Replace(string(text), "mode: shadow", "mode: enforce", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	i.hangup(t)
	if r, _ := get(t, "http://"+i.Proxy); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("with mode: enforce, status %d", r.StatusCode)
	}
}
