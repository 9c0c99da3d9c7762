//go:build !race

package config

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// aliasedHosts returns a file with one list of long hosts, and many rules that refer to the list.
func aliasedHosts(hosts, rules int) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n- name: first\n  key: [ip]\n  limits: [1/s]\n  match:\n    path: /first\n    hosts: &hosts\n")
	for i := range hosts {
		fmt.Fprintf(&b, "    - h%d.%sexample.com\n", i, strings.Repeat(strings.Repeat("x", 50)+".", 4))
	}
	for i := range rules {
		fmt.Fprintf(&b, "- {name: r%d, match: {path: /%d, hosts: *hosts}, key: [ip], limits: [1/s]}\n", i, i)
	}
	return b.String()
}

// TestAliasesRepeatABoundedAmount: a file of 0.8 MB whose rules share one list of hosts is rejected.
// All allocations together must stay below 256 MiB.
func TestAliasesRepeatABoundedAmount(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"a list of long hosts": {
			aliasedHosts(1000, 9000),
			"headgate.yaml:1028:41: the aliases up to this one repeat more than 4MiB of text: refer to shorter lists",
		},
		"much text": {
			"version: 1\nx: &x [" + strings.Repeat("x", 1<<20) + "]\nrules: [*x, *x, *x, *x, *x]\n",
			"headgate.yaml:3:25: the aliases up to this one repeat more than 4MiB of text: refer to shorter lists",
		},
		"aliases of aliases": {
			"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nrules: *e\n",
			"headgate.yaml:6:8: the aliases up to this one repeat more than 100000 entries: refer to shorter lists",
		},
		"an alias of itself": {
			"version: 1\nrules: &r [*r]\n",
			"headgate.yaml:2:12: the alias stands within the value that it repeats: write the value out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("headgate.yaml", []byte(row.text))
			runtime.ReadMemStats(&after)
			if !strings.HasPrefix(fmt.Sprint(err), row.want) {
				t.Errorf("got\n%.300s\nwant\n%s", fmt.Sprint(err), row.want)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
				t.Errorf("reading %d bytes of text allocates %d bytes, want less than 256 MiB", len(row.text), allocated)
			}
		})
	}
}

// TestAliasesOfUse: hundreds of rules can share a list by aliases, as if each rule had a copy.
func TestAliasesOfUse(t *testing.T) {
	c := parsed(t, aliasedHosts(20, 500))
	if n := len(c.Rules[500].Match.Hosts); n != 20 {
		t.Errorf("the last rule has %d hosts, want all hosts of the list", n)
	}
}

// TestManyFaultsAreFewErrors: faults beyond maxFaults take no time and no memory.
func TestManyFaultsAreFewErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "- name: r%d\n  key: [ip]\n  limits: [1/s]\n  match:\n    path: /%d\n    hosts:\n%s", i, i, strings.Repeat("    - a..b\n", maxMatches))
	}
	started := cpuTime(t)
	_, err := Parse("headgate.yaml", []byte(b.String()))
	checkFaults(t, []byte(b.String()), err)
	if elapsed := cpuTime(t) - started; elapsed > patience {
		t.Errorf("reading takes %s of processor time, which is too long", elapsed)
	}
}

// TestLongNamesAreCut: a fault repeats only the beginning of a long name.
func TestLongNamesAreCut(t *testing.T) {
	text := fill(longBytes, "version: 1\nrules:\n- name: a\n  key: [ip]\n  limits: [1/s]\n  match:\n    headers:\n      ? ", always("x")) + "\n      : [1]\n"
	_, err := Parse("headgate.yaml", []byte(text))
	checkFaults(t, []byte(text), err)
	if n := len(err.Error()); n > 2048 {
		t.Errorf("the error has %d bytes, which is too long", n)
	}
}
