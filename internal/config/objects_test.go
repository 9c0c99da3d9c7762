package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/race"
)

// sourcedFile names a source. It has a rule and the default plan, and the plans are in the source.
const sourcedFile = `version: 1
source: {http: {url: http://127.0.0.1:1/x}}
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls}
default_plan: free
customers:
  filed: {plan: free}
`

func objects(t *testing.T, file string) *Objects {
	t.Helper()
	c, err := Parse("headgate.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewObjects(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// object makes an object of a key like customers/acme.
func object(key, text string) source.Object {
	section, name, _ := strings.Cut(key, "/")
	for _, kind := range source.Kinds() {
		if kind.Section() == section {
			return source.Object{Key: source.Key{Kind: kind, Name: name}, Text: text, Revision: 1}
		}
	}
	panic("no kind: " + key) // A fault of the test that calls it.
}

// texts are what objects of a random test may be: valid, valid only with others, or faulty.
var objectTexts = map[string][]string{
	"plans/free": {"{quotas: {api_calls: [{limit: 200/30d}]}}", "{after: meter, quotas: {api_calls: [{limit: 100/30d, hard: 200}]}}"},
	"plans/paid": {
		"{after: meter, quotas: {api_calls: [{limit: 1000/30d, hard: 5000}]}}", "{quotas: {api_calls: [{limit: 1000/30d}]}}",
		"{quotas: {api_calls: [{limit: 9/1h, algorithm: token_bucket}], searches: [{limit: 4/1h}]}}", "{quotas: {}}", "[",
	},
	"plans/off": {"{mode: off}"},
	"rules/searches": {
		"{key: [header:X-Customer], quota: searches}", "{key: [ip], quota: searches}", "{key: [ip], limits: [5/1s]}", "{key: [ip], limit: 5/1s}",
	},
	"rules/api_calls-30d": {"{key: [ip], limits: [5/1m]}", "{name: other, key: [ip], limits: [5/1m]}"},
	"customers/acme":      {"{plan: paid}", "{plan: off}", "{plan: fre}", "{hard: {api_calls: 300}}", "{plan: paid, hard: {api_calls: 3000}}", ""},
	"customers/bolt": {
		"{limits: {api_calls: [{limit: 7/30d}]}}", "{limits: {api_calls: [{limit: 7/1h}, {limit: 70/30d, hard: 90}]}}",
		"{limits: {searches: [{limit: 7/1h, algorithm: sliding_log}]}}", "{limits: {other: [{limit: 7/1h}]}}", "{plan: paid}",
	},
	"customers/filed": {"{plan: free}"},
	"customers/9.9.9.9": {
		"{raise: {limits: {api_calls: [{limit: 900/30d, hard: 1000}]}, until: 2030-01-31}}", "{month_starts: 5}", "{note: a, note: b}",
	},
}

// TestWithEqualsAll makes random changes one after another. Each one is accepted if and only if all objects together are, and
// the result is that of reading all objects.
func TestWithEqualsAll(t *testing.T) {
	steps := race.Fewer(400, 60)
	random := rand.New(rand.NewPCG(1, 2))
	keys := slices.Sorted(maps.Keys(objectTexts))
	first := objects(t, sourcedFile)
	in, faults := first.With(source.Change{All: true, Objects: []source.Object{object("plans/free", objectTexts["plans/free"][0])}})
	if faults != nil {
		t.Fatal(faults)
	}
	accepted := 0
	for step := range steps {
		after := map[source.Key]source.Object{}
		for o := range in.Sourced {
			after[o.Key] = o
		}
		var c source.Change
		for _, n := range random.Perm(len(keys))[:1+random.IntN(2)] {
			texts := objectTexts[keys[n]]
			o := object(keys[n], texts[random.IntN(len(texts))])
			if _, known := after[o.Key]; known && random.IntN(4) == 0 {
				c.Deleted = append(c.Deleted, o.Key)
				delete(after, o.Key)
				continue
			}
			o.Revision = int64(step)
			c.Objects, after[o.Key] = append(c.Objects, o), o
		}
		next, faults := in.With(c)
		twin, twinFaults := first.With(source.Change{All: true, Objects: slices.Collect(maps.Values(after))})
		if (faults == nil) != (twinFaults == nil) {
			t.Fatalf("step %d: %+v\nthe change: %v\nall objects: %v", step, c, faults, twinFaults)
		}
		if faults != nil {
			continue
		}
		accepted++
		if got, want := described(next), described(twin); got != want {
			t.Fatalf("step %d: %+v: got\n%s\nwant\n%s", step, c, got, want)
		}
		var digester Digester
		if got, want := digester.Digest(next.Config()), digester.Digest(twin.Config()); got != want {
			t.Fatalf("step %d: %+v: the digest is %s, want %s", step, c, got, want)
		}
		in = next
	}
	if accepted < steps/10 || accepted > steps*9/10 {
		t.Errorf("%d of %d changes were accepted: the test must have many of both", accepted, steps)
	}
}

// TestIsApart: a customer with limits of its own depends on other customers, and so does a new one whose name has several spellings.
func TestIsApart(t *testing.T) {
	const header, address = "header:X-Customer", "ip"
	for _, row := range []struct {
		part, key, text string
		known, want     bool
	}{
		{header, "customers/new", "{plan: free, note: x}", false, true},
		{header, "customers/known", "{plan: free, note: x}", true, true},
		{header, "customers/new", "{limits: {api_calls: [{limit: 7/1h}]}}", false, false},
		{header, "customers/known", "{month_starts: 5}", true, false},
		{address, "customers/192.0.2.1", "{plan: free}", false, false},
		{address, "customers/192.0.2.1", "{plan: free}", true, true},
	} {
		all := []source.Object{object("plans/free", objectTexts["plans/free"][0])}
		if row.known {
			all = append(all, object(row.key, "{note: former}"))
		}
		file := strings.Replace(strings.Replace(sourcedFile, header, row.part, 1), "customers:\n  filed: {plan: free}\n", "", 1)
		former, faults := objects(t, file).With(source.Change{All: true, Objects: all})
		if faults != nil {
			t.Fatal(faults)
		}
		set := object(row.key, row.text)
		next, faults := former.With(source.Change{Objects: []source.Object{set}})
		if faults != nil {
			t.Fatal(faults)
		}
		if got := next.IsApart(former, set.Name); got != row.want {
			t.Errorf("%s %s by %s, known before %v: got %v, want %v", row.key, row.text, row.part, row.known, got, row.want)
		}
		if race.On {
			continue // Such a map of one goroutine takes seconds.
		}
		full, large, limited, base := *next, *next, *next, *next.base
		full.plans = make(map[string]source.Object, source.MaxObjects)
		for i := range source.MaxObjects / 100 * 99 {
			full.plans[fmt.Sprint(i)] = source.Object{}
		}
		large.size, base.limits = source.MaxTotal/1000*999, check.MaxPolicies-2
		limited.base = &base
		if full.IsApart(former, set.Name) || large.IsApart(former, set.Name) || limited.IsApart(former, set.Name) {
			t.Errorf("%s %s near a bound does not depend on other customers", row.key, row.text)
		}
	}
}

// described gives what Objects have, in a text that equal ones share.
func described(o *Objects) string {
	var b strings.Builder
	c := o.Config()
	fmt.Fprintf(&b, "%+v\n%+v\n%v\n", c.Rules, c.Plans, o.periods)
	for _, kind := range source.Kinds() {
		for _, e := range o.List(kind, "", 100) {
			fmt.Fprintf(&b, "%s %d %s %s\n", e.Key, e.Revision, e.Origin, e.Text)
			if entry, sourced := o.customers.get(e.Name); sourced && kind == source.Customer {
				plan, _, _ := o.quotas.PlanOf(entry.found(), 0)
				fmt.Fprintf(&b, "%s %s %v\n", entry.found(), plan.Name, entry.form.used)
			}
		}
	}
	fmt.Fprintln(&b, o.quotas.Len(), o.quotas.Limits(0), o.names.size())
	return b.String()
}

// TestObjectFaults: a fault names the object, and the place within its text.
func TestObjectFaults(t *testing.T) {
	all := []source.Object{
		object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"), object("plans/paid", "{after: meter, quotas: {api_calls: [{limit: 9/30d, hard: 20}]}}"),
		object("customers/acme", "{plan: paid, hard: {api_calls: 15}}"),
	}
	in, faults := objects(t, sourcedFile).With(source.Change{All: true, Objects: all})
	if faults != nil {
		t.Fatal(faults)
	}
	key := func(text string) source.Key { return object(text, "").Key }
	for _, row := range []struct {
		name   string
		change source.Change
		want   string
	}{
		{
			"an unknown plan",
			source.Change{Objects: []source.Object{object("customers/bolt", "note: x\nplan: fre\n")}},
			`customers/bolt: customers/bolt:2:7: customers.bolt.plan: plan "fre" does not exist: did you mean free?`,
		},
		{
			"a deleted plan",
			source.Change{Deleted: []source.Key{key("plans/paid")}},
			`plans/paid: plans/paid: plans.paid: is the plan of customer "acme": keep the plan, or move its customers first`, //nolint:dupword // the key, and the name of its text
		},
		{
			"a plan that a customer does not fit",
			source.Change{Objects: []source.Object{object("plans/paid", "{quotas: {api_calls: [{limit: 9/30d}]}}")}},
			`plans/paid: plans/paid: customers.acme.hard: the customer no longer fits: no limit of the quota "api_calls" has hard: ` + //nolint:dupword // the key, and the name of its text
				`remove it, or write hard beside a limit of the plan`,
		},
		{
			"the default plan",
			source.Change{Deleted: []source.Key{key("plans/free")}},
			`unknowns/: headgate.yaml:5:1: default_plan: plan "free" does not exist: write it in plans, or use one of paid`,
		},
		{
			"a name of the file",
			source.Change{Objects: []source.Object{object("customers/filed", "{}")}},
			`customers/filed: customers/filed: customers.filed: is also in the file headgate.yaml: remove it from the source, or from the file`, //nolint:dupword // the key, and the name of its text
		},
		{
			"a rule of the file",
			source.Change{Objects: []source.Object{object("rules/api", "{key: [ip], limits: [1/1s]}")}},
			`rules/api: rules/api: rules.api: is also in the file headgate.yaml: remove it from the source, or from the file`, //nolint:dupword // the key, and the name of its text
		},
		{
			"a rule with a typo",
			source.Change{Objects: []source.Object{object("rules/r", "key: [ip]\nlimits: [1/1x]\n")}},
			`rules/r: rules/r:2:10: rules.r.limits[0]: period "1x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d`,
		},
		{"no YAML", source.Change{Objects: []source.Object{object("plans/p", "[")}}, `plans/p:`},
		{
			"an empty text",
			source.Change{Objects: []source.Object{object("customers/c", "")}},
			`customers/c: customers/c:1:1: customers.c: the object is empty: write it like {plan: free}`,
		},
		{
			"two documents",
			source.Change{Objects: []source.Object{object("customers/c", "{}\n---\n{}\n")}},
			`customers/c: customers/c:2:1: customers.c: a second document begins here: write one document to an object`,
		},
		{
			"no text",
			source.Change{Objects: []source.Object{object("customers/c", "{note: a\x00}")}},
			`customers/c: customers/c:1:9: customers.c: the object has a zero byte here: it is binary: save the object as UTF-8 text`,
		},
		{
			"a text of another kind",
			source.Change{Objects: []source.Object{object("plans/p", "\xff\xfea\x00")}},
			`plans/p: plans/p:1:1: plans.p: the object is UTF-16: save it as UTF-8`,
		},
		{
			"a name with a line break",
			source.Change{Objects: []source.Object{object("customers/a\nb", "{}")}},
			`customers/"a\nb": customers/"a\nb": customers."a\nb": has a name that is empty, too long or not printable: use 1 to 256`, //nolint:dupword // the key, and the name of its text
		},
		{
			"a large text",
			source.Change{Objects: []source.Object{object("customers/c", strings.Repeat(" ", source.MaxText+1))}},
			`customers/c: customers/c: customers.c: is larger than 64KiB: write a shorter text`, //nolint:dupword // the key, and the name of its text
		},
	} {
		_, faults := in.With(row.change)
		if len(faults) == 0 {
			t.Errorf("%s: no fault", row.name)
			continue
		}
		if got := faults[0].Key.String() + ": " + faults[0].Headline(); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, got, row.want)
		}
	}
}

// TestGetAndList: objects of the file and of the source are in one list, by name.
func TestGetAndList(t *testing.T) {
	in, faults := objects(t, sourcedFile).With(manyCustomers(5, 2))
	if faults != nil {
		t.Fatal(faults)
	}
	var got []string
	for after := ""; ; {
		page := in.List(source.Customer, after, 4)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			got, after = append(got, e.Name+" "+e.Origin.String()), e.Name
		}
	}
	if want := "customer-0 source, customer-1 source, customer-2 source, customer-3 source, customer-4 source, filed file"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
	}
	if e, found := in.Get(source.Key{Kind: source.Rule, Name: "api"}); !found || e.Origin != FromFile || !strings.Contains(e.Text, "api_calls") {
		t.Errorf("the rule of the file: got %+v, %v", e, found)
	}
	if _, found := in.Get(source.Key{Kind: source.Plan, Name: "none"}); found {
		t.Error("a plan that does not exist was found")
	}
}

// TestChangeKeepsTheFormer: With does not change the Objects that it was called on.
func TestChangeKeepsTheFormer(t *testing.T) {
	in, faults := objects(t, sourcedFile).With(manyCustomers(50, 5))
	if faults != nil {
		t.Fatal(faults)
	}
	before := described(in)
	for _, c := range []source.Change{
		{Objects: []source.Object{object("customers/customer-7", "{plan: free}"), object("plans/free", objectTexts["plans/free"][1])}},
		{Deleted: []source.Key{{Kind: source.Customer, Name: "customer-1"}}},
		{All: true, Objects: []source.Object{object("plans/free", objectTexts["plans/free"][0])}},
	} {
		if _, faults := in.With(c); faults != nil {
			t.Fatal(faults)
		}
		if after := described(in); after != before {
			t.Fatalf("after %+v, the former objects are\n%s\nwant\n%s", c, after, before)
		}
	}
}

func manyCustomers(n, limits int) source.Change {
	c := source.Change{All: true, Objects: []source.Object{
		object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"),
		object("plans/paid", "{after: meter, quotas: {api_calls: [{limit: 1000/30d, hard: 5000}]}}"),
	}}
	for i := range n {
		text := fmt.Sprintf(`{"plan": "paid", "limits": {"api_calls": [{"limit": "%d/30d", "hard": 900000000}]}, "note": "customer %d"}`, 1000+i%limits, i)
		c.Objects = append(c.Objects, object(fmt.Sprintf("customers/customer-%d", i), text))
	}
	return c
}

// TestGroupsAcrossASource: a rule of a source is an alternative to one of the file, which comes first. A group of the file may wait
// for rules of the source.
func TestGroupsAcrossASource(t *testing.T) {
	o := objects(t, `version: 1
source: {http: {url: http://127.0.0.1:1/x}}
rules:
  - {name: upload, group: api, match: {path: /upload}, key: [ip], limits: [5/1s]}
`)
	in, faults := o.With(source.Change{All: true, Objects: []source.Object{
		object("rules/rest", "{group: api, key: [ip], limits: [1/1s]}"),
		object("rules/more", "{group: api, match: {path: /more}, key: [ip], limits: [9/1s]}"),
	}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var names []string
	for _, r := range in.Config().Rules {
		names = append(names, r.Group+"/"+r.Name)
	}
	if want := []string{"api/upload", "api/more", "api/rest"}; !slices.Equal(names, want) {
		t.Errorf("the rules are %v, want %v", names, want)
	}
	_, faults = in.With(source.Change{Objects: []source.Object{object("rules/tail", "{group: api, match: {path: /tail}, key: [ip], limits: [9/1s]}")}})
	if len(faults) != 1 || faults[0].Key.Name != "tail" || !strings.Contains(faults[0].Problem, `is before it in group "api"`) {
		t.Errorf("a rule after one for every path: %v", faults)
	}
}
