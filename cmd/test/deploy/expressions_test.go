package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are the labels that Prometheus adds to all metrics of a scraped process.
var targetLabels = []string{"namespace", "job", "instance", "pod"}

// judge parses an expression and returns its faults: unknown metrics, unknown labels, counters
// without a rate, and rates of metrics that are not counters. used counts the expression's metrics.
func judge(expression string, known map[string]metric, used map[string]int) []string {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	complain := func(what ...string) { problems = append(problems, strings.Join(what, " ")) }
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			used[n.Name]++
			m, found := known[n.Name]
			switch rated := isRated(path); {
			case !found:
				complain("no proxy or pacer has the metric", n.Name)
			case rated && m.kind == "gauge":
				complain("a rate of the gauge", n.Name)
			case !rated && m.kind != "gauge":
				complain("no rate of the", m.kind, n.Name)
			}
			for _, matcher := range n.LabelMatchers {
				if matcher.Name != model.MetricNameLabel && !has(matcher.Name, m) {
					complain(n.Name, "has no label", matcher.Name)
				}
			}
		case *parser.AggregateExpr:
			complainOfLabels(complain, n.Grouping, n, known)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				complainOfLabels(complain, n.VectorMatching.MatchingLabels, n.LHS, known)
				complainOfLabels(complain, n.VectorMatching.MatchingLabels, n.RHS, known)
			}
		default:
		}
		return nil
	})
	return problems
}

// isRated reports whether a selector is an argument of rate() or increase().
func isRated(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(n parser.Node) bool {
		call, isCall := n.(*parser.Call)
		return isCall && (call.Func.Name == "rate" || call.Func.Name == "increase")
	})
}

func has(label string, m metric) bool { return m.labels[label] || slices.Contains(targetLabels, label) }

// complainOfLabels reports labels that some metric of an expression does not have. For `a and b`
// and `a unless b`, only the labels of a count.
func complainOfLabels(complain func(...string), names []string, in parser.Node, known map[string]metric) {
	switch n := in.(type) {
	case *parser.VectorSelector:
		for _, name := range names {
			if !has(name, known[n.Name]) {
				complain(n.Name, "has no label", name)
			}
		}
		return
	case *parser.BinaryExpr:
		if n.Op == parser.LAND || n.Op == parser.LUNLESS {
			complainOfLabels(complain, names, n.LHS, known)
			return
		}
	default:
	}
	for child := range parser.ChildrenIter(in) {
		complainOfLabels(complain, names, child, known)
	}
}

// TestJudge checks that judge finds each kind of fault, and accepts valid expressions.
func TestJudge(t *testing.T) {
	known := map[string]metric{
		"a_total":  {"counter", map[string]bool{"client": true}},
		"b_units":  {"gauge", map[string]bool{"client": true}},
		"c":        {"gauge", nil},
		"d_bucket": {"histogram", map[string]bool{"le": true}},
	}
	for expression, want := range map[string]string{
		`sum by (client, job) (rate(a_total{client="x", namespace="y"}[5m]))`:     "",
		`histogram_quantile(0.9, sum by (le) (rate(d_bucket[5m])))`:               "",
		`b_units and on (instance) c == 0`:                                        "",
		`sum by (client) (rate(a_total[5m])`:                                      "parse error",
		`sum(rate(b_total[5m]))`:                                                  "no proxy or pacer has the metric b_total",
		`a_total`:                                                                 "no rate of the counter a_total",
		`rate(b_units[5m])`:                                                       "a rate of the gauge b_units",
		`b_units{clients="x"}`:                                                    "has no label clients",
		`sum by (client) (b_units) / sum by (client) (c)`:                         "c has no label client",
		`sum by (client) (b_units and on (job) c)`:                                "",
		`b_units and on (client) c`:                                               "c has no label client",
		`histogram_quantile(0.9, sum by (le) (d_bucket))`:                         "no rate of the histogram",
		`sum by (clients) (avg_over_time(b_units[5m]))`:                           "has no label clients",
		`topk(3, sum by (client) (avg_over_time(b_units{instance=~"$all"}[1h])))`: "",
	} {
		got := strings.Join(judge(expression, known, map[string]int{}), "; ")
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}
