package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/race"
)

// inOneFile writes a file that has the objects of a source too.
func inOneFile(objects []source.Object) string {
	sections := map[source.Kind][]string{}
	for _, o := range objects {
		entry := fmt.Sprintf("  %q: %s", o.Name, o.Text)
		if o.Kind == source.Rule {
			text := o.Text
			if !strings.Contains(text, "name:") {
				text = fmt.Sprintf("{name: %q, %s", o.Name, strings.TrimPrefix(text, "{"))
			}
			entry = "  - " + text
		}
		sections[o.Kind] = append(sections[o.Kind], entry)
	}
	lines := func(kind source.Kind) string { return strings.Join(sections[kind], "\n") + "\n" }
	head, customers, _ := strings.Cut(sourcedFile, "default_plan")
	head = strings.Replace(head, "source: {http: {url: http://127.0.0.1:1/x}}\n", "", 1)
	text := head + lines(source.Rule) + "default_plan" + customers + lines(source.Customer)
	if len(sections[source.Plan]) > 0 {
		text += "plans:\n" + lines(source.Plan)
	}
	return text
}

// randomText makes an object, often with a limit of another period or algorithm.
func randomText(random *rand.Rand, key string) string {
	if texts := objectTexts[key]; random.IntN(3) > 0 {
		if text := texts[random.IntN(len(texts))]; text != "" && text != "[" && !strings.Contains(text, "name: other") {
			return text
		}
	}
	limit := fmt.Sprintf("api_calls: [{limit: %d/%s%s}]", 1+random.IntN(3), []string{"1h", "256h", "30d", "month"}[random.IntN(4)],
		[]string{"", "", "", ", algorithm: sliding_log", ", hard: 9"}[random.IntN(5)])
	switch section, _, _ := strings.Cut(key, "/"); section {
	case "plans":
		return fmt.Sprintf("{%squotas: {%s}}", []string{"", "after: meter, "}[random.IntN(2)], limit)
	case "customers":
		return fmt.Sprintf("{%slimits: {%s}}", []string{"", "plan: paid, ", "plan: free, "}[random.IntN(3)], limit)
	default:
		return "{key: [ip], limits: [5/1s]}"
	}
}

// TestSourceEqualsFile compares objects of a source with a file that has the same: both are accepted, or neither is, and
// customers have the same plans and limits.
func TestSourceEqualsFile(t *testing.T) {
	sets := race.Fewer(600, 60)
	random := rand.New(rand.NewPCG(3, 4))
	keys := slices.Sorted(maps.Keys(objectTexts))
	first, accepted := objects(t, sourcedFile), 0
	for set := range sets {
		all := []source.Object{object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}")}
		for _, key := range keys {
			if key != "plans/free" && random.IntN(3) == 0 {
				all = append(all, object(key, randomText(random, key)))
			}
		}
		in, faults := first.With(source.Change{All: true, Objects: all})
		text := inOneFile(all)
		file, err := Parse("twin.yaml", []byte(text))
		if hasUncounted(err) {
			continue // Only plans of a source may have a quota that no rule counts yet.
		}
		if (faults == nil) != (err == nil) {
			t.Fatalf("set %d: the source: %v\nthe file: %v\n%s", set, faults, err, text)
		}
		if faults != nil {
			continue
		}
		accepted++
		if c := in.Config(); !reflect.DeepEqual(c.Rules, file.Rules) || !reflect.DeepEqual(c.Plans, file.Plans) {
			t.Fatalf("set %d: got %+v\n%+v\nwant %+v\n%+v", set, c.Rules, c.Plans, file.Rules, file.Plans)
		}
		if got, want := quotasOf(t, in.Config()), quotasOf(t, file); got != want {
			t.Fatalf("set %d: got %s, want %s\n%s", set, got, want, text)
		}
	}
	if accepted < sets/10 || accepted > sets*9/10 {
		t.Errorf("%d of %d sets were accepted: the test must have many of both", accepted, sets)
	}
}

// hasUncounted reports whether a plan of the file has a quota that no rule counts.
func hasUncounted(err error) bool {
	faults, _ := errortype.As[Faults](err)
	return slices.ContainsFunc(faults, func(f Fault) bool {
		return strings.HasPrefix(f.Path, "plans.") && strings.HasPrefix(f.Problem, "no rule counts the quota")
	})
}

// quotasOf gives the number of customers and limits, and the plan and limits of each customer of the test.
func quotasOf(t *testing.T, c *Config) string {
	t.Helper()
	q, err := c.Quotas()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, q.Len(), q.Limits(1000))
	for _, name := range []string{"acme", "bolt", "filed", "9.9.9.9", "none"} {
		plan, own, listed := q.PlanOf(name, 0)
		fmt.Fprintln(&b, name, plan.Name, own, listed)
	}
	return b.String()
}
