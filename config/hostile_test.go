package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostileBytes is what each hostile text is made long to.
const hostileBytes = 256 << 10

// fill repeats what part gives for 0, 1, 2 ... until there is enough of it.
func fill(begin string, part func(i int) string) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := 0; b.Len() < hostileBytes; i++ {
		b.WriteString(part(i))
	}
	return b.String()
}

func always(text string) func(int) string { return func(int) string { return text } }

// TestHostileTexts holds that texts that are made to take long do not, and are refused.
func TestHostileTexts(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":               fill("rules: ", always("[")),
		"braces":                 fill("rules: ", always("{")),
		"nested mappings":        fill("rules: ", always("{a: ")),
		"nested dashes":          fill("rules:\n", always("- ")),
		"nested fields":          fill("", func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
		"question marks":         fill("", always("? ")),
		"anchors":                fill("", always("&a ")),
		"tags":                   fill("", always("!a ")),
		"aliases":                fill("version: &a 1\nrules: [", always("*a\n, ")),
		"commas":                 fill("rules: [", always("a,")),
		"empty mappings":         fill("rules: [", always("{}, ")),
		"a long word":            fill("version: ", always("x")),
		"long quotes":            fill("version: \"", always("x\n ")),
		"a long block":           fill("version: |\n", always("  x\n\n")),
		"a folded text":          fill("version: ", always("x\n  ")),
		"comments":               fill("version: 1\nrules:\n", always("- a # x\n")),
		"documents":              fill("version: 1\n", always("---\n")),
		"unknown fields":         fill("version: 1\n", func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
		"one field twice":        fill("version: 1\n", always("store: memory\n")),
		"rules of nothing":       fill("version: 1\nrules:\n", always("- \n")),
		"faulty rules":           fill("version: 1\nrules:\n", always("- {name: 1 2, key: [x], limits: [y]}\n")),
		"rules of one name":      fill("version: 1\nrules:\n", always("- {name: a, key: [ip], limits: [1/s]}\n")),
		"rules by alias":         fill("version: 1\nrules:\n- &r {name: a, key: [ip], limits: [1/s]}\n", always("- *r\n")),
		"headers":                fill("version: 1\nrules:\n- match:\n    headers:\n", func(i int) string { return fmt.Sprintf("      x%d: 1\n", i) }),
		"overrides of one value": fill("version: 1\nrules:\n- name: a\n  key: [ip]\n  limits: [1/s]\n  overrides:\n", always("    a: {limits: [1/s]}\n")),
		"overrides without number": fill("version: 1\nrules:\n- name: a\n  key: [ip]\n  limits: [1/s]\n  overrides:\n", func(i int) string {
			return fmt.Sprintf("    x%d: {limits: [1/s]}\n", i)
		}),
		"a long override":     fill("version: 1\nrules:\n- name: a\n  key: [path]\n  limits: [1/s]\n  overrides:\n    ? ", always("x")) + "\n    : {limits: [1/s]}\n",
		"trusted proxies":     fill("version: 1\nrules: []\nidentity:\n  trusted_proxies:\n", func(i int) string { return fmt.Sprintf("  - 10.%d.%d.0/24\n", i/256%256, i%256) }),
		"weights of one name": fill("version: 1\nproxy:\n  fair_share:\n    client: ip\n    capacity: 1\n    weights:\n", always("      a: 1\n")),
		"weights of many": fill("version: 1\nproxy:\n  fair_share:\n    client: ip\n    capacity: 1\n    weights:\n", func(i int) string {
			return fmt.Sprintf("      x%d: 1\n", i)
		}),
		"a long client":   fill("version: 1\nproxy: {fair_share: {capacity: 1, client: header:", always("x")) + "}}\n",
		"a long weight":   fill("version: 1\nproxy:\n  fair_share:\n    client: path\n    capacity: 1\n    weights:\n      ? ", always("x")) + "\n      : 1\n",
		"a long location": fill("version: 1\nrules:\n- {name: a, key: [ip], limits: [1/s], on_exceed: {action: redirect, location: /", always("{path}")) + "}}\n",
		"a long value":    fill("version: 1\nrules:\n- {name: a, key: [ip], limits: [1/s], on_exceed: {action: degrade, header: x, value: y", always("yyyy")) + "}}\n",
		"unreached rules": fill("version: 1\nrules:\n", func(i int) string { return fmt.Sprintf("- {name: r%d, key: [ip], limits: [%d/s]}\n", i, 1+i) }),
		"a bomb of aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + strings.Join([]string{
			"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]", "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]", "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]",
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]", "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]", "rules: *f", "",
		}, "\n"),
		"digits in a limit":   fill("version: 1\nrules:\n- {name: a, key: [ip], limits: [1", always("1")) + "/s]}\n",
		"units in a duration": fill("version: 1\nrules: []\nstore_timeout: ", always("1h")),
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			c, err := Parse("headgate.yaml", []byte(text))
			if took := time.Since(started); took > patience {
				t.Errorf("it takes %s", took)
			}
			if err == nil {
				t.Fatalf("it is accepted: %d rules", len(c.Rules))
			}
			checkFaults(t, []byte(text), err)
			if n := len(err.Error()); n > 1<<16 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

// TestManyRules holds that a great configuration is no hostile one.
func TestManyRules(t *testing.T) {
	text := fill("version: 1\nrules:\n", func(i int) string {
		return fmt.Sprintf("  - {name: r%d, match: {path: /v1/%d}, key: [ip], limits: [500/2s, 2000/10s]}\n", i, i)
	})
	c := parsed(t, text)
	if len(c.Rules) < 2_500 || c.Rules[2_499].Match.Path != "/v1/2499" {
		t.Errorf("got %d rules", len(c.Rules))
	}
}

// TestBounds holds the first line of what is said of a file just beyond a bound.
func TestBounds(t *testing.T) {
	limits := make([]string, maxLimits+1)
	for i := range limits {
		limits[i] = fmt.Sprintf("%d/%ds", i+1, i+1)
	}
	for _, row := range []struct{ text, want string }{
		{
			strings.Repeat("#", maxFileBytes+1),
			"headgate.yaml: the file is greater than 8MiB: split the rules over several instances",
		},
		{
			strings.Repeat("\n", maxFileBytes),
			"headgate.yaml:1:1: the file is empty: begin with version: 1",
		},
		{
			"#" + strings.Repeat(",", maxMarks+1),
			"headgate.yaml: the signs , & and ! stand in the file 500001 times, more than 500000: write long lists one entry to a line, with - before each",
		},
		{
			"version: 1\nrules:\n" + strings.Repeat("- \n", maxRules+1),
			"headgate.yaml:3:1: rules: has 65537 entries: use at most 65536",
		},
		{
			"version: &one 1\nrules:\n" + strings.Repeat("- *one\n", maxAliases+1),
			"headgate.yaml:1:10: rules[0]: must be fields, and is \"1\": write it like " + ruleExample,
		},
		{
			overridesOf(maxOverrides + 1),
			"headgate.yaml:6:3: rules[0].overrides: has 10001 values: use at most 10000",
		},
		{
			overridesOf(maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxAllOverrides-6*maxOverrides, 1, 1),
			"headgate.yaml:65570:3: rules[7].overrides: the overrides of all rules have 65537 values and more: use at most 65536 in one file",
		},
		{
			"version: 1\nrules: []\nidentity: {trusted_proxies: [" + strings.Repeat("10.0.0.1, ", maxTrustedProxies) + "unix]}\n",
			"headgate.yaml:3:29: identity.trusted_proxies: has 1001 entries: use at most 1000",
		},
		{
			"version: 1\nrules: [{name: a, key: [ip], limits: [" + strings.Join(limits, ", ") + "]}]\n",
			"headgate.yaml:2:38: rules[0].limits: has 17 entries: use at most 16",
		},
	} {
		_, err := Parse("headgate.yaml", []byte(row.text))
		if err == nil {
			t.Errorf("%.40q is accepted", row.text)
			continue
		}
		if got, _, _ := strings.Cut(err.Error(), "\n"); got != row.want {
			t.Errorf("%.40q gives\n%s\nwant\n%s", row.text, got, row.want)
		}
	}
}

// overridesOf gives rules with so many overrides each.
func overridesOf(counts ...int) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i, n := range counts {
		fmt.Fprintf(&b, "- name: r%d\n  key: [path]\n  limits: [%d/m]\n  overrides:\n", i, i+1)
		for j := range n {
			fmt.Fprintf(&b, "    /%d: {limits: [2/s]}\n", j)
		}
	}
	return b.String()
}

// TestManyOverrides holds that as many as there may be are read in time.
func TestManyOverrides(t *testing.T) {
	started := time.Now()
	c := parsed(t, overridesOf(maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxAllOverrides-6*maxOverrides))
	if took := time.Since(started); took > patience {
		t.Errorf("it takes %s", took)
	}
	if o := c.Rules[5].Overrides; len(o) != maxOverrides || o[77].Value != "/77" || o[77].Policies[0].Limit.Count != 2 {
		t.Errorf("got %d overrides", len(o))
	}
}

// TestDifferentLimitsAreBounded: rules may repeat each other's limits at will.
func TestDifferentLimitsAreBounded(t *testing.T) {
	rules := func(different int) string {
		var b strings.Builder
		b.WriteString("version: 1\nrules:\n")
		for i := range maxPolicies/maxLimits + 1 {
			fmt.Fprintf(&b, "- name: r%d\n  key: [header:h%d]\n  limits:\n", i, i)
			for j := range maxLimits {
				fmt.Fprintf(&b, "  - %d/%dms\n", i%different*(maxLimits+1)+j+1, j+1)
			}
		}
		return b.String()
	}
	parsed(t, rules(500))
	_, err := Parse("headgate.yaml", []byte(rules(maxPolicies)))
	const want = "headgate.yaml:3:1: rules: the rules have 32768 different limits: use at most 32767"
	if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAliasesAreBounded: each alias may stand for a great value.
func TestAliasesAreBounded(t *testing.T) {
	text := "version: 1\nrules:\n- {name: a, key: [&ip ip], match: {path: /a}, limits: [1/s]}\n"
	for i := range maxAliases + 1 {
		text += fmt.Sprintf("- {name: r%d, key: [*ip], match: {path: /%d}, limits: [1/s]}\n", i, i)
	}
	_, err := Parse("headgate.yaml", []byte(text))
	const want = "headgate.yaml:10004:24: rules[10001].key[0]: more than 10000 aliases are used: write the values out"
	if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
