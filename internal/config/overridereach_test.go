package config

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// TestOverridesReach: of random patterns with stars, each one that is accepted applies to a request, which is made from it, and each
// that is refused applies to none of many requests.
func TestOverridesReach(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 2000 {
		names := []string{}
		for range 2 + random.IntN(2) {
			name := strings.Repeat("a", random.IntN(3)) + strings.Repeat("b", random.IntN(2)) + "*"
			if !strings.Contains(strings.Join(names, " ")+" ", name+" ") {
				names = append(names, name)
			}
		}
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "%q: {limits: [9/m]}, ", name)
		}
		_, err := Parse("a.yaml", []byte("version: 1\nrules: [{name: a, key: ['header:X-Id'], limits: [5/m], overrides: {"+text.String()+"}}]\n"))
		applies := applying(t, names)
		for i, name := range names {
			fault := err != nil && strings.Contains(err.Error(), fmt.Sprintf("%q never applies", name))
			if fault == applies[i] {
				t.Fatalf("%q: %q applies: %t, and the fault is %v", names, name, applies[i], err)
			}
			if fault {
				refused++
			} else {
				accepted++
			}
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d are accepted and %d refused, want more of both", accepted, refused)
	}
}

// applying says which patterns apply to any of the values that they can tell apart.
func applying(t *testing.T, names []string) []bool {
	t.Helper()
	part, err := rule.ParsePart("header:X-Id")
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]rule.Override, len(names))
	for i, name := range names {
		entries[i] = rule.Override{Value: name, Many: true}
	}
	index, err := rule.NewManyOverrides(part, entries)
	if err != nil {
		t.Fatal(err)
	}
	applies := make([]bool, len(names))
	for _, value := range []string{
		"c", "ac", "aac", "bc", "abc", "aabc", "a", "aa", "b", "ab", "aab", "bb", "abb", "aabb", "aaa", "aaab",
	} {
		if i, found := index.Find(&headgate.Request{Header: oneHeader(value)}); found {
			applies[i] = true
		}
	}
	return applies
}

// oneHeader is a request's header X-Id.
type oneHeader string

func (h oneHeader) Lookup(string) (string, bool) { return string(h), true }
