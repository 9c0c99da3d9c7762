package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/output"
	"github.com/headgate/headgate/internal/config"
)

// overload is a fair share and a throttle before a service that collapses. One group floods it.
const overload = `
version: 1
fair_share: {client: "header:X-Client-Id", capacity: 300, cycle: 1s}
throttle: {concurrency: 16, deadline: 500ms}
rules: [{name: per-client, key: ["header:X-Client-Id"], limits: [200/s]}]
`

const overloadScenario = `
seed: 3
length: 1m
clients:
  - {name: calm, number: 5, traffic: poisson, rate: 20/s, headers: {X-Client-Id: "{key}"}}
  - {name: flood, traffic: constant, rate: 500/s, from: 20s, until: 40s, headers: {X-Client-Id: flood}}
service: {cores: 4, cpu: 10ms, wait: 10ms, slow_from: 64, slow_by: 1}
`

// parsed reads a configuration.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ran runs options, and returns the output.
func ran(t *testing.T, o Options) (text string, err error) {
	t.Helper()
	var b bytes.Buffer
	o.Out, o.Progress = &b, output.NewProgress(io.Discard, false, time.Now)
	if o.Traffic == "" {
		o.Traffic = "poisson"
	}
	o.Keys = max(o.Keys, 1)
	if o.Seed == 0 {
		o.Seed = 1
	}
	err = o.Run(t.Context())
	return b.String(), err
}

// TestPlayFairShareAndThrottle: the flooding client is refused, and the calm ones keep nearly all of their requests. Two runs give
// the same bytes.
func TestPlayFairShareAndThrottle(t *testing.T) {
	t.Parallel()
	play := func() string {
		text, err := ran(t, Options{Config: parsed(t, overload), Scenario: overloadScenario, ScenarioName: "overload.yaml", JSON: true})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := play()
	if text != play() {
		t.Error("two runs differ")
	}
	other, err := ran(t, Options{Config: parsed(t, overload), Scenario: overloadScenario, JSON: true, Seed: 4, Given: []string{"seed"}})
	if err != nil || !strings.Contains(other, `"seed": 4`) {
		t.Errorf("--seed does not replace the seed of the scenario (%v): %.60s", err, other)
	}
	var d Document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	calm, flood := d.Run.Groups[0], d.Run.Groups[1]
	if calm.Requests < 5500 || calm.Requests > 6500 || float64(calm.Admitted) < 0.95*float64(calm.Requests) {
		t.Errorf("of %d requests of the calm clients, %d passed", calm.Requests, calm.Admitted)
	}
	if flood.Requests < 9990 || flood.Requests > 10_000 || flood.Admitted > 5000 || flood.Admitted < 1000 {
		t.Errorf("of %d requests of the flood, %d passed", flood.Requests, flood.Admitted)
	}
	reasons := ""
	for _, r := range d.Run.Refusals {
		reasons += r.By + "/" + r.Reason + " "
	}
	if !strings.Contains(reasons, "fair_share/over_share") {
		t.Errorf("the refusals are %s", reasons)
	}
	for _, m := range d.Run.Timeline {
		if m.Second > 45 && m.Requests > 60 || m.Admitted > m.Requests+40 {
			t.Errorf("at second %v, %d requests arrive and %d are admitted", m.Second, m.Requests, m.Admitted)
		}
	}
}

// TestPlayByFlags: without a scenario, the flags make one group, at the rate of the first limit.
func TestPlayByFlags(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
version: 1
store: redis://192.0.2.1/0
rules: [{name: slow, key: [ip], limits: [10/s], on_exceed: {action: delay, max_wait: 2s}}]
`)
	text, err := ran(t, Options{Config: c, Keys: 3, Traffic: "on_off", For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"60 s of virtual time, seed 1", "GROUP", "client", "LONGEST WAIT", "Left out:\n  store redis://192.0.2.1:6379: its rules count in memory"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
}

// TestRequestsOfGroups: rules see the host, the clean path and the query of a group.
func TestRequestsOfGroups(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
version: 1
rules:
  - {name: exports, match: {hosts: [a.example.com], path: /v1/x, query: {format: csv}}, key: [host], limits: [1/h]}
`)
	text, err := ran(t, Options{Config: c, Scenario: `
length: 10s
clients: [{name: a, traffic: constant, rate: 1/s, host: "A.example.com:80", path: "/v1/./%78?format=c%73v"}]
`})
	if want := "exports  over_limit      9"; err != nil || !strings.Contains(text, want) {
		t.Errorf("got %v, want %q:\n%s", err, want, text)
	}
}

// TestSpared: the output says what rules in shadow would have refused, what rules degraded, and that fair share knows no client.
func TestSpared(t *testing.T) {
	t.Parallel()
	const rules = `
version: 1
rules:
  - {name: trial, mode: shadow, key: [ip], limits: [2/m]}
  - {name: less, key: [ip], limits: [4/m], on_exceed: {action: degrade, header: X-Less, value: "1"}}
`
	for want, o := range map[string]Options{
		"trial  shadow: over_limit      8":                                    {Config: parsed(t, rules)},
		"less             degraded      6":                                    {Config: parsed(t, rules)},
		`"reason": "shadow: over_limit"`:                                      {Config: parsed(t, rules), JSON: true},
		"Every request was refused because fair_share.client found no client": {Config: parsed(t, overload)},
	} {
		o.Scenario = "length: 10s\nclients: [{name: a, traffic: constant, rate: 1/s}]"
		if text, err := ran(t, o); err != nil || !strings.Contains(text, want) {
			t.Errorf("got %v, want %q:\n%s", err, want, text)
		}
	}
}

// TestWrongOptions: each fault says what to write.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	empty := parsed(t, "version: 1\nrules: []\n")
	for want, o := range map[string]Options{
		`--limit "5x"`:                     {Limit: "5x"},
		"windows of the calendar":          {Limit: "5/day"},
		`--algorithm "best" is not known`:  {Limit: "5/s", Algorithms: []string{"best"}},
		"--sub-windows 0: use 1 to 256":    {Limit: "5/s", SubWindows: []int{0}},
		`traffic "noise" is not known`:     {Limit: "5/s", Traffic: "noise"},
		`--rate "x" is no rate`:            {Limit: "5/s", Rate: "x"},
		"--keys 2000000: use 1 to 1000000": {Limit: "5/s", Keys: 2_000_000},
		`--zipf "1"`:                       {Limit: "5/s", Zipf: "1", Keys: 2},
		"--scenario needs":                 {Limit: "5/s", Scenario: overloadScenario},
		"write --rate 100/m":               {Config: empty},
		"more than 200,000,000 requests":   {Config: empty, Scenario: "length: 366d\nclients: [{name: a, traffic: poisson, rate: 1000000000/s}]"},
		// Flags that would have no effect, and values that are given twice.
		"--algorithm has no effect with --config":                  {Config: empty, Rate: "1/s", Algorithms: []string{"token_bucket"}, Given: []string{"algorithm"}},
		"--sub-windows has no effect with --config":                {Config: empty, Rate: "1/s", Given: []string{"sub-windows"}},
		"--rate has no effect with --scenario: write rate in s.y":  {Config: empty, Scenario: overloadScenario, ScenarioName: "s.y", Given: []string{"rate"}},
		"--for has no effect with --scenario: write length in s.y": {Config: empty, Scenario: overloadScenario, ScenarioName: "s.y", Given: []string{"for"}},
		"--seed -1: use":                      {Config: empty, Scenario: overloadScenario, Seed: -1, Given: []string{"seed"}},
		"--sub-windows has no effect without": {Limit: "5/s", Algorithms: []string{"token_bucket"}, SubWindows: []int{4}, Given: []string{"sub-windows"}},
		"--sub-windows has 4 twice":           {Limit: "5/s", SubWindows: []int{4, 1, 4}},
		"--algorithm has token_bucket twice":  {Limit: "5/s", Algorithms: []string{"token_bucket", "token_bucket"}},
		"--jitter has no effect with on_off":  {Limit: "5/s", Traffic: "on_off", Jitter: true},
		"--zipf has no effect with one key":   {Limit: "5/s", Zipf: "1.1"},
		"overload.yaml:3:1: field":            {Config: empty, Scenario: "length: 1s\nclients: [{name: a, traffic: poisson, rate: 1/s}]\nx: y", ScenarioName: "overload.yaml"},
	} {
		if text, err := ran(t, o); err == nil || !strings.Contains(err.Error(), want) || text != "" {
			t.Errorf("got %v and %q, want %q", err, text, want)
		}
	}
}

// TestInterrupted: a run that is interrupted prints what is done, and says so.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"comparison": {Limit: "100/m", Algorithms: []string{"token_bucket", "fixed_window"}},
		"run":        {Config: parsed(t, overload), Scenario: overloadScenario},
	} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var b bytes.Buffer
		o.Out, o.Progress, o.Traffic, o.Keys, o.Seed = &b, output.NewProgress(io.Discard, false, time.Now), "poisson", 1, 1
		if err := o.Run(ctx); !errors.Is(err, ErrPartial) || !strings.HasPrefix(b.String(), "PARTIAL") ||
			!strings.Contains(b.String(), map[string]string{
				"comparison": "0.000 s         -         -               -", "run": "It reached 0.000 s of virtual time",
			}[name]) {
			t.Errorf("%s: got %v\n%s", name, err, b.String())
		}
	}
}

// TestPages: --html writes a page with the tables and pictures of both kinds of result.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"comparison": {Limit: "100/m", Algorithms: []string{"fixed_window", "sliding_window"}, SubWindows: []int{1, 4, 12}, Traffic: "bursty", For: 20 * time.Minute},
		"run":        {Config: parsed(t, overload), Scenario: overloadScenario},
	} {
		o.HTML, o.Command = filepath.Join(t.TempDir(), "page.html"), "headgate simulate <it>"
		if _, err := ran(t, o); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(o.HTML)
		if err != nil {
			t.Fatal(err)
		}
		pictures := map[string]int{"comparison": 3, "run": 1}[name]
		if n := strings.Count(string(page), "<svg"); n != pictures || !strings.Contains(string(page), "headgate simulate &lt;it&gt;") {
			t.Errorf("%s: the page has %d pictures, want %d", name, n, pictures)
		}
	}
	o := Options{Limit: "1/m", HTML: filepath.Join(t.TempDir(), "none", "page.html"), For: time.Minute}
	if _, err := ran(t, o); err == nil || !strings.Contains(err.Error(), "make its folder") {
		t.Errorf("got %v", err)
	}
}

// TestSchemaDescribesTheOutput: the schema of --json has the fields of the output, each with its meaning.
func TestSchemaDescribesTheOutput(t *testing.T) {
	t.Parallel()
	text, err := output.Schema("The output of headgate simulate --json", Document{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"not"`) {
		t.Error("a field has no form in JSON")
	}
	var root struct {
		Properties map[string]struct {
			Required   []string `json:"required"`
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for name, part := range root.Properties {
		for field, f := range part.Properties {
			if f.Description == "" {
				t.Errorf("%s.%s has no meaning: give it a tag help", name, field)
			}
		}
	}
	printed, err := ran(t, Options{Limit: "5/s", Algorithms: []string{"token_bucket"}, JSON: true, For: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]map[string]any
	if err := json.Unmarshal([]byte(printed), &d); err != nil {
		t.Fatal(err)
	}
	for _, field := range root.Properties["comparison"].Required {
		if _, found := d["comparison"][field]; !found {
			t.Errorf("the output lacks comparison.%s", field)
		}
	}
	for field := range d["comparison"] {
		if _, known := root.Properties["comparison"].Properties[field]; !known {
			t.Errorf("the schema lacks comparison.%s", field)
		}
	}
}
