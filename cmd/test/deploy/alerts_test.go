package deploy

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

var alertsFolder = filepath.Join(deployFolder, "prometheus")

func loadAlerts(t *testing.T) []monitoring.Rule {
	t.Helper()
	var spec monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(alertsFolder, "headgate.rules.yaml")), &spec); err != nil {
		t.Fatal(err)
	}
	var all []monitoring.Rule
	for _, group := range spec.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// TestPromtool runs the tests of the alerts with promtool.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install Debian's package prometheus, or run make deps")
	}
	tests, err := filepath.Glob(filepath.Join(alertsFolder, "*.test.yaml"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("%s: found no *.test.yaml, error %v", alertsFolder, err)
	}
	for i := range tests {
		tests[i] = filepath.Base(tests[i])
	}
	for _, args := range [][]string{{"check", "rules", "headgate.rules.yaml"}, append([]string{"test", "rules"}, tests...)} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = alertsFolder
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %q failed: %v\n%s", args, err, out)
		}
	}
}

// TestEveryAlertIsTried checks that each alert has a case that fires and a case that does not.
func TestEveryAlertIsTried(t *testing.T) {
	fires, silent := map[string]int{}, map[string]int{}
	tests, _ := filepath.Glob(filepath.Join(alertsFolder, "*.test.yaml"))
	for _, path := range tests {
		var f struct {
			Tests []struct {
				Cases []struct {
					Alert string           `json:"alertname"`
					Want  []map[string]any `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal(read(t, path), &f); err != nil {
			t.Fatal(err)
		}
		for _, test := range f.Tests {
			for _, c := range test.Cases {
				if len(c.Want) > 0 {
					fires[c.Alert]++
				} else {
					silent[c.Alert]++
				}
			}
		}
	}
	var alerts []string
	for _, a := range loadAlerts(t) {
		alerts = append(alerts, a.Alert)
		if fires[a.Alert] == 0 || silent[a.Alert] == 0 {
			t.Errorf("%s: got %d cases that fire and %d cases that do not fire, want at least 1 of each", a.Alert, fires[a.Alert], silent[a.Alert])
		}
	}
	for _, name := range slices.Collect(maps.Keys(silent)) { // A misspelled name would always count as silent.
		if !slices.Contains(alerts, name) {
			t.Errorf("the tests name the alert %s, which headgate.rules.yaml does not define", name)
		}
	}
}

// TestAlerts checks that alerts use metrics of a running proxy, and link to a runbook.
func TestAlerts(t *testing.T) {
	known := shown(t)
	alerts := loadAlerts(t)
	if len(alerts) < 5 {
		t.Fatalf("headgate.rules.yaml: got %d alerts, want at least 5", len(alerts))
	}
	for _, a := range alerts {
		expression := a.Expr.String()
		for _, problem := range judge(expression, known, map[string]int{}) {
			t.Errorf("%s: %s\n%s", a.Alert, problem, expression)
		}
		for _, found := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.Annotations["summary"]+a.Annotations["description"], -1) {
			if !regexp.MustCompile(`by \([^)]*\b` + found[1] + `\b`).MatchString(expression) {
				t.Errorf("%s: the annotations use the label %s, but the expression does not keep this label", a.Alert, found[1])
			}
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, a.Labels["severity"]) || a.For == nil {
			t.Errorf("%s: got severity %q and duration %v, want info, warning or critical, and a duration", a.Alert, a.Labels["severity"], a.For)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: the summary or the description is empty", a.Alert)
		}
		checkRunbook(t, a.Alert, a.Annotations["runbook_url"])
	}
}

// checkRunbook checks that a link leads to a heading of a document.
func checkRunbook(t *testing.T, alert, link string) {
	t.Helper()
	page, found := strings.CutPrefix(link, "https://github.com/headgate/headgate/blob/main/")
	page, anchor, anchored := strings.Cut(page, "#")
	if !found || !anchored {
		t.Errorf("%s: runbook_url is %q, want a page of the repository with an anchor", alert, link)
		return
	}
	if !slices.Contains(anchors(string(read(t, filepath.Join("..", "..", "..", filepath.FromSlash(page))))), anchor) {
		t.Errorf("%s: runbook_url links to %s#%s, but %s has no such heading", alert, page, anchor, page)
	}
}

// anchors returns GitHub's anchors of a page's headings.
func anchors(page string) []string {
	var all []string
	for _, found := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// TestAlertsInTheChart checks that the chart renders the alerts unchanged: {{ $labels }} is a
// template of Prometheus and not of Helm.
func TestAlertsInTheChart(t *testing.T) {
	object := into[monitoring.PrometheusRule](t, rendered(t, "prometheusRule: {enabled: true}"), "prometheusrule.yaml")
	var inChart []monitoring.Rule
	for _, group := range object.Spec.Groups {
		inChart = append(inChart, group.Rules...)
	}
	alone, err := yaml.Marshal(loadAlerts(t))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := yaml.Marshal(inChart); err != nil || !bytes.Equal(text, alone) {
		t.Errorf("the rendered alerts differ from headgate.rules.yaml, error %v:\n%s", err, text)
	}
}
