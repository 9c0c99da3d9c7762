package deploy

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// dashboard contains the fields of a Grafana dashboard that tests read.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"` //nolint:tagliatelle // Grafana's name
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type variable struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Query json.RawMessage `json:"query"`
	Regex string          `json:"regex"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Repeat      string `json:"repeat"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	GridPos struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"` //nolint:tagliatelle // Grafana's name
	Targets []struct {
		RefID        string `json:"refId"` //nolint:tagliatelle // Grafana's name
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"` //nolint:tagliatelle // Grafana's name
	} `json:"targets"`
}

func loadDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, filepath.Join(deployFolder, "grafana", "headgate.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled returns an expression as Grafana sends it, with values for the variables of the time range.
func filled(expression string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(expression)
}

// TestDashboardShowsWhatThereIs checks that every expression is valid and uses metrics and labels
// of a running proxy or a pacer. The dashboard must use every metric of shares, and several
// metrics of rules, stores and pacing.
func TestDashboardShowsWhatThereIs(t *testing.T) {
	d, known, used := loadDashboard(t), shown(t), map[string]int{}
	expressions := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expressions++
			for _, problem := range judge(filled(target.Expr), known, used) {
				t.Errorf("%s, %s: %s\n%s", p.Title, target.RefID, problem, target.Expr)
			}
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, label[1]) {
					t.Errorf("%s, %s: the legend uses the label %s, which the expression does not keep", p.Title, target.RefID, label[1])
				}
			}
		}
	}
	if expressions < 20 {
		t.Errorf("found only %d expressions: fix the loop that collects them", expressions)
	}
	for prefix, least := range map[string]int{"headgate_decisions": 1, "headgate_store_": 7, "headgate_pace_": 10} {
		n := 0
		for name := range used {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		if n < least {
			t.Errorf("the dashboard uses %d metrics %s*, want at least %d", n, prefix, least)
		}
	}
	for name := range known {
		if strings.HasPrefix(name, "headgate_share_") && used[name] == 0 {
			t.Errorf("no panel of the dashboard uses %s", name)
		}
	}
}

// TestDashboardVariables checks that the variables use existing metrics and labels.
func TestDashboardVariables(t *testing.T) {
	d, known := loadDashboard(t), shown(t)
	labelValues := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	queryResult := regexp.MustCompile(`^query_result\((.+)\)$`)
	defined := []string{}
	for _, v := range d.Templating.List {
		defined = append(defined, v.Name)
		if v.Type != "query" {
			continue
		}
		var query struct {
			Query string `json:"query"`
		}
		if err := json.Unmarshal(v.Query, &query); err != nil {
			t.Fatal(err)
		}
		if _, err := regexp.Compile(strings.Trim(v.Regex, "/")); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		expression := query.Query
		switch values, result := labelValues.FindStringSubmatch(expression), queryResult.FindStringSubmatch(expression); {
		case values != nil: // The label, the second argument, must exist on the metric.
			expression = "sum by (" + values[2] + ") (" + values[1] + ")"
		case result != nil:
			expression = result[1]
		default:
			t.Errorf("%s: got the query %q, want label_values or query_result", v.Name, expression)
		}
		for _, problem := range judge(expression, known, map[string]int{}) {
			t.Errorf("%s: %s\n%s", v.Name, problem, query.Query)
		}
	}
	used := regexp.MustCompile(`\$\{?([A-Za-z]\w*)`)
	for _, found := range used.FindAllSubmatch(read(t, filepath.Join(deployFolder, "grafana", "headgate.json")), -1) {
		if !slices.Contains(defined, string(found[1])) {
			t.Errorf("the dashboard uses the variable $%s, but does not define it", found[1])
		}
	}
}

// TestDashboardIsInOrder checks the dashboard's uid, and that its panels do not overlap.
func TestDashboardIsInOrder(t *testing.T) {
	d := loadDashboard(t)
	if d.UID != "headgate-fair-share" || d.SchemaVersion != 42 || d.Title == "" {
		t.Errorf("got uid %q, title %q, schema version %d, want headgate-fair-share, a title, 42", d.UID, d.Title, d.SchemaVersion)
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: the id %d is 0 or belongs to another panel", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Datasource.UID != "${datasource}" || p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("%s: got data source %q, description %q and %d targets, want ${datasource}, a description and a target", p.Title, p.Datasource.UID, p.Description, len(p.Targets))
		}
		if g := p.GridPos; g.W == 0 || g.H == 0 || g.X+g.W > 24 {
			t.Errorf("%s: got position %+v, want a panel with an area, within 24 columns", p.Title, g)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, found := taken[[2]int{x, y}]; found {
					t.Fatalf("the panels %s and %s overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] {
				t.Errorf("%s: two targets have the refId %s", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}

// TestDashboardInTheChart checks that the chart renders the dashboard unchanged: {{client}} is a
// template of Grafana and not of Helm.
func TestDashboardInTheChart(t *testing.T) {
	c := into[core.ConfigMap](t, rendered(t, "dashboard: {enabled: true}"), "dashboard.yaml")
	if c.Data["headgate.json"] != string(read(t, filepath.Join(deployFolder, "grafana", "headgate.json"))) {
		t.Error("the dashboard in the ConfigMap differs from headgate.json")
	}
	if c.Labels["grafana_dashboard"] != "1" {
		t.Errorf("got labels %v, want grafana_dashboard", c.Labels)
	}
}
