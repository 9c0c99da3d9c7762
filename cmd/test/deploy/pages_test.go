package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
)

// pages maps each document to the minimum number of its --set arguments.
var pages = map[string]int{
	filepath.Join("..", "..", "..", "docs", "kubernetes.md"): 14,
	filepath.Join(chartFolder, "README.md"):                  4,
}

// TestCommandsOfPages checks that each --set in a page sets a known value to a valid setting.
func TestCommandsOfPages(t *testing.T) {
	c := loadChart(t)
	for path, least := range pages {
		found := regexp.MustCompile(`--set ([^\s\\]+)`).FindAllStringSubmatch(string(read(t, path)), -1)
		if len(found) < least {
			t.Errorf("%s has %d --set arguments, want at least %d: fix the pattern that finds them", path, len(found), least)
		}
		for _, set := range found {
			values := valuesOf(t)
			if err := strvals.ParseInto(set[1], values); err != nil {
				t.Errorf("%s: --set %s: %v", path, set[1], err)
				continue
			}
			if _, err := render(c, values); err != nil {
				t.Errorf("%s: --set %s: %v", path, set[1], err)
			}
		}
	}
}

// TestCheckOfThePage checks that the sed command in docs/kubernetes.md extracts headgate.yaml exactly.
func TestCheckOfThePage(t *testing.T) {
	page := string(read(t, filepath.Join("..", "..", "..", "docs", "kubernetes.md")))
	filter := regexp.MustCompile(`\| (sed '[^']+') >headgate.yaml`).FindStringSubmatch(page)
	if filter == nil {
		t.Fatal("docs/kubernetes.md has no command that extracts headgate.yaml for headgate check")
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", filter[1])
	command.Stdin = strings.NewReader("---\n# Source: headgate/templates/configmap.yaml\n" + rendered(t)["configmap.yaml"])
	out, err := command.Output()
	if want := configuration(t); err != nil || string(out) != want {
		t.Errorf("%s: error %v, got\n%s\nwant\n%s", filter[1], err, out, want)
	}
}

// TestNamesOfThePage checks that docs/kubernetes.md names only existing values, and names every alert
// once.
func TestNamesOfThePage(t *testing.T) {
	page := string(read(t, filepath.Join("..", "..", "..", "docs", "kubernetes.md")))
	known := string(read(t, filepath.Join(chartFolder, "README.md")))
	for _, found := range regexp.MustCompile("`((?:app|fairShare|headgate|podMonitor|prometheusRule|networkPolicy)\\.[A-Za-z.]+)(?:=true)?`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(known, "`"+found[1]+"`") {
			t.Errorf("docs/kubernetes.md names %s, which is not a value of the chart", found[1])
		}
	}
	var told, alerts []string
	for _, found := range regexp.MustCompile("`(Headgate[A-Za-z]+)`").FindAllStringSubmatch(page, -1) {
		told = append(told, found[1])
	}
	for _, a := range loadAlerts(t) {
		alerts = append(alerts, a.Alert)
	}
	slices.Sort(told)
	slices.Sort(alerts)
	if !slices.Equal(told, alerts) {
		t.Errorf("docs/kubernetes.md lists the alerts %q, want %q", told, alerts)
	}
}

// TestExampleOfAnotherChart checks that the README's example is the chart that the tests render.
func TestExampleOfAnotherChart(t *testing.T) {
	readme := string(read(t, filepath.Join(chartFolder, "README.md")))
	template := string(read(t, filepath.Join("testdata", "parent", "templates", "orders.yaml")))
	lines := regexp.MustCompile(`(?m)\{\{-? include "(headgate\.[a-zA-Z]+)" \.Subcharts\.headgate`)
	var used []string
	for _, found := range lines.FindAllStringSubmatch(template, -1) {
		used = append(used, found[1])
	}
	var shown []string
	for _, found := range lines.FindAllStringSubmatch(readme, -1) {
		shown = append(shown, found[1])
	}
	if len(used) < 5 || !slices.Equal(used, shown) {
		t.Errorf("the README includes the templates %q, want %q as in the tested chart", shown, used)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(parentValues), "\n") {
		if line = strings.TrimSpace(strings.ReplaceAll(line, ", protocol: h2c", "")); !strings.Contains(readme, line) {
			t.Errorf("the README lacks this line of the tested chart's values: %s", line)
		}
	}
}
