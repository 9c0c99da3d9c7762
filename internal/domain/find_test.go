package domain

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/property"
)

// d returns a descriptor of names and values.
func d(texts ...string) headgate.Descriptors {
	var entries headgate.Descriptors
	for i := 0; i < len(texts); i += 2 {
		entries = append(entries, headgate.DescriptorEntry{Name: texts[i], Value: texts[i+1]})
	}
	return entries
}

func built(tb testing.TB, nodes ...Node) *Index {
	tb.Helper()
	x, err := Build(nodes)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// leafOf returns the leaf of a descriptor, and -2 if no node matches.
func leafOf(x *Index, entries headgate.Descriptors) int {
	var m Match
	if !x.Find(entries, &m) {
		return -2
	}
	return m.Leaf()
}

func TestFind(t *testing.T) {
	x := built(
		t,
		Node{Key: "path", Leaf: 0},
		Node{Key: "path", Value: "/a/*", Leaf: 1},
		Node{Key: "path", Value: "/a/b*", Leaf: 2},
		Node{Key: "path", Value: "/a/b", Leaf: 3, Nodes: []Node{
			{Key: "user", Value: "u*", Leaf: NoLeaf, Nodes: []Node{{Key: "plan", Leaf: 4}}},
			{Key: "user", Leaf: 5},
		}},
		Node{Key: "file", Value: "*.pdf", Leaf: 6},
		Node{Key: "file", Value: "a*.*f", Leaf: 7},
		Node{Key: "a_b", Value: "c", Leaf: 8},
		Node{Key: "a", Value: "b_d", Leaf: 9},
		Node{Key: "star*", Leaf: 10},
		Node{Key: "twice", Value: "*aa*aa*", Leaf: 11},
		Node{Key: "nested", Value: "a*x", Leaf: 12},
		Node{Key: "nested", Value: "abcd*", Leaf: 13},
		Node{Key: "nested", Value: "abce*", Leaf: 14},
		Node{Key: "nested", Value: "abcdef*y", Leaf: 15},
		Node{Key: "literal", Value: "a*", Literal: true, Leaf: 16},
		Node{Key: "literal", Value: "b*", Leaf: 17},
		Node{Key: "literal", Value: "b*", Literal: true, Leaf: 18},
	)
	for _, row := range []struct {
		story string
		entry headgate.Descriptors
		want  int
	}{
		{"exactly the value comes before a wildcard", d("path", "/a/b"), 3},
		{"the first wildcard of the file comes, not the longest", d("path", "/a/bc"), 1},
		{"a * stands for no byte too", d("path", "/a/"), 1},
		{"the text of a wildcard is that wildcard", d("path", "/a/b*"), 2},
		{"another value has the node without a value", d("path", "/b"), 0},
		{"an empty value has the node without a value", d("path", ""), 0},
		{"another key has no node", d("road", "/a/b"), -2},
		{"no entry has no node", nil, -2},
		{"a node may have no limit", d("path", "/a/b", "user", "u1"), NoLeaf},
		{"the second level", d("path", "/a/b", "user", "x"), 5},
		{"the third level", d("path", "/a/b", "user", "u1", "plan", "free"), 4},
		{"the choice is final: /a/* has no next level, and path is not tried", d("path", "/a/c", "user", "x"), -2},
		{"too many entries", d("path", "/a/b", "user", "x", "plan", "free"), -2},
		{"a wildcard that begins with *", d("file", "x.pdf"), 6},
		{"two *", d("file", "a.gif"), 7},
		{"the parts of a wildcard do not overlap", d("file", "a.f"), 7},
		{"a wildcard needs all of its parts", d("file", "af"), -2},
		{"inner parts do not overlap either", d("twice", "baaac"), -2},
		{"inner parts one after the other", d("twice", "baaaac"), 11},
		{"a wildcard with a short prefix comes first, though the value has longer ones", d("nested", "abcdefx"), 12},
		{"of several prefixes of a value, the first one of the file", d("nested", "abcdefy"), 13},
		{"only the short prefix", d("nested", "abx"), 12},
		{"no prefix to its end", d("nested", "abc"), -2},
		{"an underscore separates nothing", d("a_b", "c"), 8},
		{"the same text with another border has no node", d("a", "b_c"), -2},
		{"a * in a key is a byte", d("starry", ""), -2},
		{"a key with a *", d("star*", "x"), 10},
		{"a literal with a *", d("literal", "a*"), 16},
		{"a literal is no wildcard", d("literal", "ab"), -2},
		{"a wildcard beside a literal of the same text", d("literal", "bb"), 17},
		{"a literal comes before the wildcard of the same text", d("literal", "b*"), 18},
	} {
		if got := leafOf(x, row.entry); got != row.want {
			t.Errorf("%s: %v has the leaf %d, want %d", row.story, row.entry, got, row.want)
		}
	}
}

// TestFindResetsTheMatch checks that a Match of one descriptor does not reach the next one.
func TestFindResetsTheMatch(t *testing.T) {
	x := built(t, Node{Key: "a", Leaf: 7})
	var m Match
	if !x.Find(d("a", "1"), &m) || m.Leaf() != 7 {
		t.Fatalf("got the leaf %d, want 7", m.Leaf())
	}
	if x.Find(d("b", "1"), &m) || m.Leaf() != NoLeaf {
		t.Errorf("without a node: got the leaf %d, want none", m.Leaf())
	}
}

func TestBuildRefuses(t *testing.T) {
	deep := Node{Key: "k", Leaf: NoLeaf}
	for range MaxDepth {
		deep = Node{Key: "k", Leaf: NoLeaf, Nodes: []Node{deep}}
	}
	for _, row := range []struct {
		nodes []Node
		want  string
	}{
		{[]Node{{Key: "a", Nodes: []Node{{Value: "v"}}}}, `domain: "a._v": key is empty: write the key of an entry`},
		{[]Node{{Key: "a", Value: "v"}, {Key: "a", Value: "v"}}, `domain: "a_v": value appears twice among its siblings: remove one`},
		{[]Node{{Key: "a"}, {Key: "a"}}, `domain: "a": key appears twice among its siblings: remove one`},
		{[]Node{{Key: "a", Value: "v*"}, {Key: "a", Value: "v*", Literal: true}, {Key: "a", Value: "v*"}}, `domain: "a_v*": value appears twice`},
		{[]Node{{Key: "a", Value: "v*", Literal: true}, {Key: "a", Value: "v*", Literal: true}}, `domain: "a_v*": value appears twice`},
		{[]Node{{Key: "a", Value: "v*", Literal: true, ShareThreshold: true}}, `domain: "a_v*": share_threshold is only valid with a wildcard`},
		{[]Node{{Key: "a", Value: "v", ShareThreshold: true}}, `domain: "a_v": share_threshold is only valid with a wildcard: remove it, or`},
		{[]Node{deep}, `descriptors is the level 33: use at most 32 levels`},
		{[]Node{{Key: strings.Repeat("a", 1000), Value: "v", ShareThreshold: true}}, `aaaa"...: share_threshold is only`},
	} {
		_, err := Build(row.nodes)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got the error %v, want %s", err, row.want)
		}
	}
}

// TestBuildFindsAllFaults checks that one call reports all faults, up to a bound.
func TestBuildFindsAllFaults(t *testing.T) {
	_, err := Build([]Node{{}, {Key: "a", Nodes: []Node{{Key: "b", ShareThreshold: true}, {}}}})
	bad, found := errortype.As[*NodeError](err)
	if n := strings.Count(err.Error(), "domain: "); n != 3 || !found || fmt.Sprint(bad.At, bad.Field) != "[0]key" {
		t.Errorf("got %d faults, the first at %v, want 3: %v", n, bad, err)
	}
	_, err = Build(make([]Node, 5*maxErrors))
	if n := strings.Count(err.Error(), "domain: "); n != maxErrors {
		t.Errorf("got %d faults, want %d", n, maxErrors)
	}
}

// drawValue draws short texts of few letters, so that many of them match.
func drawValue(t *property.T) string {
	return strings.Join(property.SliceOfN(property.SampledFrom([]string{"a", "b", "*", "ab", "_", "\xff"}), 0, 6).Draw(t, "value"), "")
}

func drawNodes(t *property.T, depth int, leaf *int) []Node {
	var nodes []Node
	for range property.IntRange(0, 8).Draw(t, "siblings") {
		n := Node{Key: property.SampledFrom([]string{"k", "l"}).Draw(t, "key"), Value: drawValue(t), Leaf: *leaf}
		*leaf++
		if depth > 1 {
			n.Nodes = drawNodes(t, depth-1, leaf)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// TestFindIsTheTwin compares Find with its definition.
func TestFindIsTheTwin(t *testing.T) {
	built := 0
	property.Check(t, func(t *property.T) {
		leaf := 0
		nodes := drawNodes(t, 2, &leaf)
		x, err := Build(nodes)
		if err != nil {
			return // Two siblings are the same.
		}
		built++
		for range 20 {
			var entries headgate.Descriptors
			for range property.IntRange(1, 2).Draw(t, "depth") {
				entries = append(entries, headgate.DescriptorEntry{Name: property.SampledFrom([]string{"k", "l"}).Draw(t, "name"), Value: drawValue(t)})
			}
			want := -2
			if found := twinFind(nodes, entries); found != nil {
				want = found[len(found)-1].Leaf
			}
			if got := leafOf(x, entries); got != want {
				t.Fatalf("%v has the leaf %d, want %d", entries, got, want)
			}
		}
	})
	if built < 20 {
		t.Errorf("%d trees were built, want 20", built)
	}
}

// FuzzWildcard compares wildcards with their definition.
func FuzzWildcard(f *testing.F) {
	for _, pair := range [][2]string{{"a*b", "aab"}, {"*a*a*", "a"}, {"**", ""}, {"ab*ba", "aba"}, {"\xff*", "\xff\xfe"}, {"*aab", "aaab"}} {
		f.Add(pair[0], pair[1], "a*")
	}
	f.Fuzz(func(t *testing.T, pattern, value, other string) {
		if len(pattern)+len(value)+len(other) > 300 {
			return
		}
		nodes := []Node{{Key: "k", Value: other + "*", Leaf: 1}, {Key: "k", Value: pattern + "*", Leaf: 2}, {Key: "k", Value: "*" + pattern, Leaf: 3}}
		x, err := Build(nodes)
		if err != nil {
			return
		}
		want := -2
		if found := twinFind(nodes, d("k", value)); found != nil {
			want = found[0].Leaf
		}
		if got := leafOf(x, d("k", value)); got != want {
			t.Errorf("%q with %q and %q has the leaf %d, want %d", value, pattern, other, got, want)
		}
	})
}

// TestLongValues checks wildcards of 4 KiB with values of 4 KiB. A matcher that tries several
// places for a part would not end in the time of a test.
func TestLongValues(t *testing.T) {
	const long = 4096
	value := strings.Repeat("a", long)
	for _, row := range []struct {
		pattern, value string
		want           bool
	}{
		{strings.Repeat("*", long), value, true},
		{strings.Repeat("a*", long/2), value, true},
		{strings.Repeat("a*", long/2) + "b", value, false},
		{strings.Repeat("*a", long/2) + "*b*", value, false},
		{strings.Repeat("a", long-1) + "*b", value, false},
		{"*" + strings.Repeat("a", long-1), value, true},
		{"*" + strings.Repeat("a", long/2) + "b*", value, false},
		{"*\xff*", strings.Repeat("\xc3", long) + "\xff", true},
	} {
		x := built(t, Node{Key: "k", Value: row.pattern})
		for range 200 {
			if got := leafOf(x, d("k", row.value)) == 0; got != row.want {
				t.Fatalf("%.20q... matches: %t, want %t", row.pattern, got, row.want)
			}
		}
	}
}

// siblingsOf returns a tree of siblings with a value each, and descriptors that end at them.
func siblingsOf(count int, value, request string) (nodes []Node, all []headgate.Descriptors) {
	for i := range count {
		nodes = append(nodes, Node{Key: "user", Value: fmt.Sprintf(value, i), Leaf: i})
		all = append(all, d("user", fmt.Sprintf(request, i)))
	}
	return nodes, all
}

func TestFindAllocatesNothing(t *testing.T) {
	nodes, all := siblingsOf(1000, "user-%05d*", "user-%05d/x")
	nodes = append(nodes, Node{Key: "user", Value: "*a*b*c", ShareThreshold: true})
	all = append(all, d("user", strings.Repeat("aXbXc", 500)))
	x := built(t, nodes...)
	var m Match
	key, metric := make([]byte, 0, 8192), make([]byte, 0, 8192)
	i := 0
	if n := testing.AllocsPerRun(2000, func() {
		entries := all[i%len(all)]
		i++
		if !x.Find(entries, &m) {
			t.Fatal("no node")
		}
		AppendKey(key, "shop", entries, &m)
		AppendMetric(metric, "shop", entries, &m)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestManySiblings checks that the tree of prefixes is not deeper with many siblings than the
// length of their values allows, and that each prefix is found.
func TestManySiblings(t *testing.T) {
	nodes, all := siblingsOf(10_000, "user-%05d*", "user-%05d/x")
	x := built(t, nodes...)
	for i, entries := range all {
		if got := leafOf(x, entries); got != i {
			t.Fatalf("%v has the leaf %d, want %d", entries, got, i)
		}
	}
	wild := x.top["user"].wild
	if n, most := len(wild.nodes), 10_000+2_000; n > most {
		t.Errorf("the tree has %d nodes of %d bytes, want at most %d", n, unsafe.Sizeof(prefix{}), most)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, count := range []int{10, 10_000} {
		for name, texts := range map[string][2]string{
			"exact":  {"user-%05d", "user-%05d"},
			"prefix": {"user-%05d*", "user-%05d/x"},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				nodes, all := siblingsOf(count, texts[0], texts[1])
				x := built(b, nodes...)
				var m Match
				i := 0
				for b.Loop() {
					x.Find(all[i], &m)
					if i++; i == len(all) {
						i = 0
					}
				}
			})
		}
	}
}

// BenchmarkWildcard shows that the time is linear in the length of the pattern and the value.
func BenchmarkWildcard(b *testing.B) {
	for _, long := range []int{512, 4096} {
		b.Run(fmt.Sprint(long), func(b *testing.B) {
			x := built(b, Node{Key: "k", Value: strings.Repeat("a*", long/2) + "b*"})
			var m Match
			entries := d("k", strings.Repeat("a", long))
			for b.Loop() {
				x.Find(entries, &m)
			}
		})
	}
}
