package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// TestDigestOfEqualFiles: reading a file twice gives one digest, and the files differ.
func TestDigestOfEqualFiles(t *testing.T) {
	files := map[string]string{}
	for _, file := range testdata(t, "ok") {
		var of [2]string
		for i := range of {
			c, err := Parse(filepath.Base(file), read(t, file))
			if err != nil {
				t.Fatal(err)
			}
			of[i] = new(Digester).Digest(c)
		}
		if of[0] != of[1] || len(of[0]) != 16 {
			t.Errorf("%s has the digests %v", file, of)
		}
		files[of[0]] = file
	}
	if all := len(testdata(t, "ok")); len(files) < all/2 {
		t.Errorf("%d files have only %d digests", all, len(files))
	}
}

// TestDigest: what decides changes the digest, and what concerns one instance does not.
func TestDigest(t *testing.T) {
	const rules = "rules:\n- {name: a, key: [header:X], limits: [5/s]}\n- {name: b, key: [ip], limits: [9/1h]}\n"
	var d Digester
	of := func(text string) string { return d.Digest(parsed(t, "version: 1\n"+text)) }
	base := of(rules)
	for _, same := range []string{
		"instance: other\n" + rules,
		"log: {level: debug, keys: plain}\n" + rules,
		"admin: {listen: '127.0.0.1:1', history: {series: 5}}\n" + rules,
		"proxy: {upstream: 'http://127.0.0.1:1', listen: ':2'}\n" + rules,
		"# a comment\n" + strings.Replace(rules, "5/s", "5/1s", 1),
		"max_memory: 1MiB\n" + rules,
	} {
		if got := of(same); got != base {
			t.Errorf("%q changes the digest", same)
		}
	}
	seen := map[string]string{base: rules}
	for _, other := range []string{
		strings.Replace(rules, "5/s", "6/s", 1), strings.Replace(rules, "header:X", "header:Y", 1), strings.Replace(rules, "name: b", "name: c", 1),
		strings.Replace(rules, "limits: [9", "mode: shadow, limits: [9", 1), strings.Replace(rules, "limits: [9", "match: {path: /x}, limits: [9", 1),
		rules + "fair_share: {client: ip, capacity: 5}\n", rules + "fair_share: {client: ip, capacity: 6}\n",
		rules + "fair_share: {client: ip, capacity: 6, weights: {192.0.2.1: 2}}\n", rules + "fair_share: {client: ip, capacity: 6, weights: {192.0.2.2: 2}}\n",
		rules + "throttle: {concurrency: 5}\n", rules + "exempt: [{path: /healthz}]\n", rules + "identity: {trusted_proxies: [10.0.0.0/8]}\n",
		rules + "identity: {trusted_proxies: [10.0.0.0/9]}\n", rules + "store: redis://127.0.0.1:1\n", rules + "mode: shadow\n",
		rules + "evaluate: independent\n",
		"rules:\n" + strings.Join(reversed(strings.Split(strings.TrimSpace(rules), "\n")[1:]), "\n") + "\n",
	} {
		got := of(other)
		if former, known := seen[got]; known {
			t.Errorf("%q has the digest of %q", other, former)
		}
		seen[got] = other
	}
}

func reversed(lines []string) []string { return []string{lines[1], lines[0]} }

// TestDigestOfCustomers: customers of a source count by name and text, and not by revision.
func TestDigestOfCustomers(t *testing.T) {
	first := objects(t, sourcedFile)
	plans := object("plans/free", objectTexts["plans/free"][0])
	of := func(objects ...source.Object) string {
		in, faults := first.With(source.Change{All: true, Objects: append(objects, plans)})
		if faults != nil {
			t.Fatal(faults)
		}
		return new(Digester).Digest(in.Config())
	}
	customer := func(name, plan string, revision int64) source.Object {
		o := object("customers/"+name, "{plan: "+plan+"}")
		o.Revision = revision
		return o
	}
	none, one := of(), of(customer("n1", "free", 1))
	if none == one || one != of(customer("n1", "free", 7)) || one == of(customer("n2", "free", 1)) {
		t.Error("a customer, its name or its revision counts wrongly")
	}
	if of(customer("n1", "free", 1), customer("n2", "free", 1)) == one {
		t.Error("a second customer does not count")
	}
	if before := new(Digester).Digest(first.Config()); before == none {
		t.Error("a source without objects is like one that is not known")
	}
}

// BenchmarkDigest has 1,000 rules, once changed and once only with other customers.
func BenchmarkDigest(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 1\nrules:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "- {name: r%d, match: {path: /r%d/*}, key: [header:X], limits: [5/s, 100/1h]}\n", i, i)
	}
	c, err := Parse("test.yaml", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			new(Digester).Digest(c)
		}
	})
	b.Run("same rules", func(b *testing.B) {
		var d Digester
		for b.Loop() {
			d.Digest(c)
		}
	})
}
