//go:build !race

// One goroutine reads these texts, which are made to take long. The race detector would make it
// ten times slower without finding anything, so these tests run without the detector.

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/check"
)

// longBytes is the length of a hostile text.
const longBytes = 256 << 10

// hostile returns a text of longBytes bytes.
func hostile(begin string, part func(i int) string) string {
	return fill(longBytes, begin, part)
}

// fill repeats part(0), part(1), part(2) ... until the text has the given number of bytes.
func fill(bytes int, begin string, part func(i int) string) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := 0; b.Len() < bytes; i++ {
		b.WriteString(part(i))
	}
	return b.String()
}

func always(text string) func(int) string { return func(int) string { return text } }

// TestHostileTexts checks that hostile texts are rejected quickly.
func TestHostileTexts(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":        hostile("rules: ", always("[")),
		"braces":          hostile("rules: ", always("{")),
		"nested mappings": hostile("rules: ", always("{a: ")),
		"nested dashes":   hostile("rules:\n", always("- ")),
		"nested fields":   hostile("", func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
		"question marks":  hostile("", always("? ")),
		"anchors":         hostile("", always("&a ")),
		"tags":            hostile("", always("!a ")),
		"aliases":         hostile("version: &a 1\nrules: [", always("*a\n, ")),
		"commas":          hostile("rules: [", always("a,")),
		"empty mappings":  hostile("rules: [", always("{}, ")),
		"a long word":     hostile("version: ", always("x")),
		"long quotes":     hostile("version: \"", always("x\n ")),
		"a long block":    hostile("version: |\n", always("  x\n\n")),
		"a folded text":   hostile("version: ", always("x\n  ")),
		"comments":        hostile("version: 1\nrules:\n", always("- a # x\n")),
		"documents":       hostile("version: 1\n", always("---\n")),
		"unknown fields":  hostile("version: 1\n", func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
		"unknown fields of rules": hostile("version: 1\nrules:\n", func(i int) string {
			return fmt.Sprintf("- {name: r%d, key: [ip], limits: [1/s], 0: 1, 1: 1}\n", i)
		}),
		"one field twice":        hostile("version: 1\n", always("store: memory\n")),
		"rules of nothing":       hostile("version: 1\nrules:\n", always("- \n")),
		"faulty rules":           hostile("version: 1\nrules:\n", always("- {name: 1 2, key: [x], limits: [y]}\n")),
		"rules of one name":      hostile("version: 1\nrules:\n", always("- {name: a, key: [ip], limits: [1/s]}\n")),
		"rules by alias":         hostile("version: 1\nrules:\n- &r {name: a, key: [ip], limits: [1/s]}\n", always("- *r\n")),
		"headers":                hostile("version: 1\nrules:\n- match:\n    headers:\n", func(i int) string { return fmt.Sprintf("      x%d: 1\n", i) }),
		"overrides of one value": hostile("version: 1\nrules:\n- name: a\n  key: [ip]\n  limits: [1/s]\n  overrides:\n", always("    a: {limits: [1/s]}\n")),
		"overrides without number": hostile("version: 1\nrules:\n- name: a\n  key: [ip]\n  limits: [1/s]\n  overrides:\n", func(i int) string {
			return fmt.Sprintf("    x%d: {limits: [1/s]}\n", i)
		}),
		"a long override":     hostile("version: 1\nrules:\n- name: a\n  key: [path]\n  limits: [1/s]\n  overrides:\n    ? ", always("x")) + "\n    : {limits: [1/s]}\n",
		"trusted proxies":     hostile("version: 1\nrules: []\nidentity:\n  trusted_proxies:\n", func(i int) string { return fmt.Sprintf("  - 10.%d.%d.0/24\n", i/256%256, i%256) }),
		"weights of one name": hostile("version: 1\nfair_share:\n  client: ip\n  capacity: 1\n  weights:\n", always("    a: 1\n")),
		"weights of many": hostile("version: 1\nfair_share:\n  client: ip\n  capacity: 1\n  weights:\n", func(i int) string {
			return fmt.Sprintf("    x%d: 1\n", i)
		}),
		"a long client":   hostile("version: 1\nfair_share: {capacity: 1, client: header:", always("x")) + "}\n",
		"a long weight":   hostile("version: 1\nfair_share:\n  client: path\n  capacity: 1\n  weights:\n    ? ", always("x")) + "\n    : 1\n",
		"a long location": hostile("version: 1\nrules:\n- {name: a, key: [ip], limits: [1/s], on_exceed: {action: redirect, location: /", always("{path}")) + "}}\n",
		"a long value":    hostile("version: 1\nrules:\n- {name: a, key: [ip], limits: [1/s], on_exceed: {action: degrade, header: x, value: y", always("yyyy")) + "}}\n",
		"unreached rules": hostile("version: 1\nrules:\n", func(i int) string { return fmt.Sprintf("- {name: r%d, key: [ip], limits: [%d/s]}\n", i, 1+i) }),
		"a bomb of aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + strings.Join([]string{
			"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]", "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]", "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]",
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]", "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]", "rules: *f", "",
		}, "\n"),
		"digits in a limit":   hostile("version: 1\nrules:\n- {name: a, key: [ip], limits: [1", always("1")) + "/s]}\n",
		"units in a duration": hostile("version: 1\nrules: []\nstore_timeout: ", always("1h")),
	} {
		t.Run(name, func(t *testing.T) {
			started := cpuTime(t)
			c, err := Parse("headgate.yaml", []byte(text))
			if elapsed := cpuTime(t) - started; elapsed > patience {
				t.Errorf("reading takes %s of processor time, which is too long", elapsed)
			}
			if err == nil {
				t.Fatalf("the text is accepted with %d rules, want faults", len(c.Rules))
			}
			checkFaults(t, []byte(text), err)
			if n := len(err.Error()); n > 1<<16 {
				t.Errorf("the error has %d bytes, which is too long", n)
			}
		})
	}
}

// TestManyRules checks that a large valid configuration is accepted.
func TestManyRules(t *testing.T) {
	text := fill(longBytes, "version: 1\nrules:\n", func(i int) string {
		return fmt.Sprintf("  - {name: r%d, match: {path: /v1/%d}, key: [ip], limits: [500/2s, 2000/10s]}\n", i, i)
	})
	c := parsed(t, text)
	if len(c.Rules) < 2_500 || c.Rules[2_499].Match.Path != "/v1/2499" {
		t.Errorf("got %d rules", len(c.Rules))
	}
}

// TestBounds checks the first fault of files just beyond a bound.
func TestBounds(t *testing.T) {
	limits := make([]string, maxLimits+1)
	for i := range limits {
		limits[i] = fmt.Sprintf("%d/%ds", i+1, i+1)
	}
	for _, row := range []struct{ text, want string }{
		{
			strings.Repeat("#", maxFileBytes+1),
			"headgate.yaml: the file is larger than 8MiB: split the rules over several instances",
		},
		{
			strings.Repeat("\n", maxFileBytes),
			"headgate.yaml:1:1: the file is empty: begin with version: 1",
		},
		{
			"#" + strings.Repeat(",", maxMarks+1),
			"headgate.yaml: the file has the characters , & and ! 500001 times, more than 500000: write each entry of a long list on its own line, after a -",
		},
		{
			"version: 1\nrules:\n" + strings.Repeat("- \n", maxRules+1),
			"headgate.yaml:3:1: rules: has 65537 entries: use at most 65536",
		},
		{
			"version: &one 1\nrules:\n" + strings.Repeat("- *one\n", maxAliases+1),
			"headgate.yaml:1:10: rules[0]: must be fields, not \"1\": write it like " + ruleExample,
		},
		{
			overridesOf(maxOverrides + 1),
			"headgate.yaml:6:3: rules[0].overrides: has 10001 values: use at most 10000",
		},
		{
			overridesOf(maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxAllOverrides-6*maxOverrides, 1, 1),
			"headgate.yaml:65570:3: rules[7].overrides: the overrides of all rules have 65537 or more values: use at most 65536 in one file",
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
			t.Errorf("the text %.40q... is accepted, want a fault", row.text)
			continue
		}
		if got, _, _ := strings.Cut(err.Error(), "\n"); got != row.want {
			t.Errorf("%.40q gives\n%s\nwant\n%s", row.text, got, row.want)
		}
	}
}

// overridesOf returns one rule for each count, with that number of overrides.
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

// TestManyOverrides checks that the highest allowed number of overrides is read in time.
func TestManyOverrides(t *testing.T) {
	counts := []int{maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxOverrides, maxAllOverrides - 6*maxOverrides}
	started := cpuTime(t)
	c := parsed(t, overridesOf(counts...))
	if elapsed := cpuTime(t) - started; elapsed > patience {
		t.Errorf("reading takes %s of processor time, which is too long", elapsed)
	}
	if o := c.Rules[len(counts)-2].Overrides; len(o) != maxOverrides || o[77].Value != "/77" || o[77].Policies[0].Limit.Count != 2 {
		t.Errorf("got %d overrides", len(o))
	}
}

// TestDifferentLimitsAreBounded: only different limits count, so rules may repeat limits.
func TestDifferentLimitsAreBounded(t *testing.T) {
	rules := func(different int) string {
		var b strings.Builder
		b.WriteString("version: 1\nrules:\n")
		for i := range check.MaxPolicies/maxLimits + 1 {
			fmt.Fprintf(&b, "- name: r%d\n  key: [header:h%d]\n  limits:\n", i, i)
			for j := range maxLimits {
				fmt.Fprintf(&b, "  - %d/%dms\n", i%different*(maxLimits+1)+j+1, j+1)
			}
		}
		return b.String()
	}
	parsed(t, rules(500))
	_, err := Parse("headgate.yaml", []byte(rules(check.MaxPolicies)))
	const want = "headgate.yaml:3:1: rules: the rules have 32768 different limits: use at most 32767"
	if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDifferentLimitsOfDomainsAreBounded: the limits of domains count too.
func TestDifferentLimitsOfDomainsAreBounded(t *testing.T) {
	domains := func(different int) string {
		var b strings.Builder
		b.WriteString("version: 1\ndomains:\n  shop:\n    descriptors:\n")
		for i := range check.MaxPolicies + 1 {
			fmt.Fprintf(&b, "    - {key: k%d, limits: %d/1h}\n", i, i%different)
		}
		return b.String()
	}
	parsed(t, domains(500))
	_, err := Parse("headgate.yaml", []byte(domains(check.MaxPolicies+1)))
	const want = "headgate.yaml:3:3: domains: the rules and domains have 32768 different limits: use at most 32767"
	if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAliasesAreBounded: the number of aliases is bounded, because each can stand for a large value.
func TestAliasesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nrules:\n- {name: a, key: [&ip ip], match: {path: /a}, limits: [1/s]}\n")
	for i := range maxAliases + 1 {
		fmt.Fprintf(&text, "- {name: r%d, key: [*ip], match: {path: /%d}, limits: [1/s]}\n", i, i)
	}
	_, err := Parse("headgate.yaml", []byte(text.String()))
	const want = "headgate.yaml:10004:24: rules[10001].key[0]: more than 10000 aliases are used: write the values out"
	if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
