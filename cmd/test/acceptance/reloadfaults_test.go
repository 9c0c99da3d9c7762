package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// faultLine is a log line about a fault.
type faultLine struct {
	Level   string `json:"level"`
	At      string `json:"at"`
	Field   string `json:"field"`
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
	Error   string `json:"error"`
}

// faultLines gives the log lines about refused configurations.
func faultLines(t *testing.T, i *instance) []faultLine {
	t.Helper()
	var all []faultLine
	for _, line := range i.lines() {
		if !strings.HasPrefix(line.Msg, "the configuration was not reloaded") {
			continue
		}
		var fault faultLine
		if err := json.Unmarshal([]byte(line.text), &fault); err != nil {
			t.Fatal(err)
		}
		all = append(all, fault)
	}
	return all
}

// tells reports whether the log has a fault.
func tells(all []faultLine, want *faultLine) bool {
	return slices.ContainsFunc(all, func(f faultLine) bool {
		return f.Level == "ERROR" && strings.HasSuffix(f.At, want.At) && strings.Contains(f.Problem, want.Problem) &&
			strings.Contains(f.Fix, want.Fix) && strings.Contains(f.Error, want.Error) && (want.Field == "" || f.Field == want.Field)
	})
}

// TestReloadRefusesFaults: an invalid file changes nothing. The log and the metrics show the
// fault until the file is valid.
func TestReloadRefusesFaults(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	good := fmt.Sprintf(reloadConfiguration, "3/1h", behind.URL)
	i := launch(t, file(t, good), dataPlaneVariable) // With a variable, a file without the section has another fault.
	walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200, tells: []string{`RateLimit: "client";r=2;t=~3600`}}})
	success := metric(t, i, `headgate_config_reloads_total{result="success"}`)
	failures := metric(t, i, `headgate_config_reloads_total{result="failure"}`)
	two := strings.Replace(strings.Replace(good, "3/1h", "3/1x", 1), "max_wait", "max_wiat", 1)
	for n, c := range []struct {
		text  string
		wants []faultLine
	}{
		{strings.Replace(good, "3/1h", "3/1x", 1), []faultLine{{
			At: ":4:106", Field: "rules[0].limits[0]", Problem: `unknown unit "x"`, Fix: "2s, 10m, 1h or 1d",
		}}},
		{two, []faultLine{
			{At: ":4:106", Field: "rules[0].limits[0]"},
			{At: ":10:32", Field: "rules[2].on_exceed", Problem: `"max_wiat" is not known`, Fix: "did you mean max_wait"},
			{At: ":10:16", Field: "rules[2].on_exceed.max_wait", Problem: "is missing"},
		}},
		{"version: 1\nrules: []\n", []faultLine{{Error: "has no upstream"}}},
		{"", []faultLine{{At: ":1:1"}}},
	} {
		from := len(faultLines(t, i))
		replace(t, i.path, []byte(c.text))
		i.hangup(t)
		for k := range c.wants {
			eventually(t, fmt.Sprintf("%+v in the log", c.wants[k]), func() bool { return tells(faultLines(t, i)[from:], &c.wants[k]) })
		}
		if now := metric(t, i, `headgate_config_reloads_total{result="failure"}`); now <= failures {
			t.Errorf("file %d: %v reloads are counted as failed, want more than %v", n, now, failures)
		} else {
			failures = now
		}
		for series, want := range map[string]float64{
			"headgate_config_last_reload_successful":                                                 0,
			`headgate_config_reloads_total{result="success"}`:                                        success,
			`headgate_rule_info{algorithm="sliding_log",limits="3/1h",mode="enforce",rule="client"}`: 1,
		} {
			if got := metric(t, i, series); got != want {
				t.Errorf("file %d: %s is %v, want %v", n, series, got, want)
			}
		}
	}
	if err := os.Remove(i.path); err != nil {
		t.Fatal(err)
	}
	i.hangup(t)
	eventually(t, "the log to tell that the file is gone", func() bool {
		return tells(faultLines(t, i), &faultLine{Error: "no such file"})
	})
	walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200, tells: []string{`RateLimit: "client";r=1;t=~3600`}}})
	replace(t, i.path, []byte(good))
	i.hangup(t)
	if good := metric(t, i, "headgate_config_last_reload_successful"); good != 1 {
		t.Errorf("with a good file headgate_config_last_reload_successful is %v", good)
	}
	if got := metric(t, i, `headgate_config_reloads_total{result="success"}`); got <= success {
		t.Errorf("%v reloads succeeded, want more than %v", got, success)
	}
	walk(t, "http://"+i.Proxy, []step{{path: "/v1/x", want: 200, tells: []string{`RateLimit: "client";r=0;t=~3600`}}, {path: "/v1/x", want: 429}})
}

// TestReloadNamesWhatNeedsARestart: the log names changed settings that need a restart. The
// other changes take effect.
func TestReloadNamesWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0") // an address in use
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cert := newAuthority(t).issue(t, "localhost", 2)
	first := fmt.Sprintf(`version: 1
max_memory: 16MiB
rules:
  - {name: client, key: [all], limits: ["3/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`, behind.URL) + adminAnywhere
	i := launch(t, file(t, first))
	replace(t, i.path, []byte(fmt.Sprintf(`version: 1
max_memory: 32MiB
on_full: allow
log: {format: text, decisions: none}
rules:
  - {name: client, key: [all], limits: ["7/1h"]}
proxy:
  listen: "%s"
  tls: {cert: %s, key: %s}
  proxy_protocol: [10.0.0.0/8]
  read_header_timeout: 1s
  idle_timeout: 1s
  max_header: 32KiB
  max_connections: 10
  max_connections_per_address: 5
  max_requests: 10
  request_id: X-Other-Id
  upstream: "%s"
`+adminAnywhere, taken.Addr(), cert.cert, cert.key, behind.URL)))
	i.hangup(t)
	want := []string{
		"log.format", "max_memory", "on_full", "proxy.idle_timeout", "proxy.listen", "proxy.max_connections",
		"proxy.max_connections_per_address",
		"proxy.max_header", "proxy.max_requests", "proxy.proxy_protocol", "proxy.read_header_timeout", "proxy.request_id",
		"proxy.tls.cert", "proxy.tls.key",
	}
	restarts := func() []string {
		var settings []string
		for _, line := range i.lines() {
			var fields struct {
				Setting string `json:"setting"`
			}
			if line.Msg == "a setting takes effect at the next start" && json.Unmarshal([]byte(line.text), &fields) == nil {
				settings = append(settings, fields.Setting)
			}
		}
		slices.Sort(settings)
		return settings
	}
	if got := slices.Compact(restarts()); !slices.Equal(got, want) {
		t.Errorf("the log names %q, want %q\n%s", got, want, i.text())
	}
	walk(t, "http://"+i.Proxy, []step{{want: 200, tells: []string{`RateLimit-Policy: "client";q=7;w=3600`, "X-Other-Id:"}}})

	// With the settings of the start, no restart is needed.
	replace(t, i.path, []byte(first))
	i.hangup(t)
	known := len(restarts())
	i.hangup(t)
	if got := restarts(); len(got) != known {
		t.Errorf("the log names %q, want no more than before", got)
	}
	// A store without memory for logs cannot get any by a reload.
	replace(t, i.path, []byte(strings.Replace(first, "key: [all]", "key: [all], algorithm: sliding_log", 1)))
	i.hangup(t)
	eventually(t, "the fault in the log", func() bool { return tells(faultLines(t, i), &faultLine{Error: "restart headgate"}) })
}

// TestReloadThatDoesNotFit: a valid configuration may need more than the running store has. The
// reload changes nothing, and every rule keeps counting.
func TestReloadThatDoesNotFit(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	good := fmt.Sprintf(reloadConfiguration, "3/1h", behind.URL)
	i := launch(t, file(t, good))
	client := []step{{path: "/v1/x", want: 200}}
	walk(t, "http://"+i.Proxy, client)
	replace(t, i.path, []byte(strings.NewReplacer("16MiB", "2GiB", "3/1h", "1000000/1h", "name: client", "name: other").Replace(good)))
	i.hangup(t)
	eventually(t, "the fault in the log", func() bool { return tells(faultLines(t, i), &faultLine{Error: "restart headgate"}) })
	walk(t, "http://"+i.Proxy, client)
	if n := decisions(t, i, "client", "enforce", "allow", "within_limit"); n != 2 {
		t.Errorf("%v decisions of the rule are counted, want 2", n)
	}
}
