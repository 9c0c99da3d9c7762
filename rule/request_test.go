package rule

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/headgate/headgate"
)

// sent are the headers or the cookies of a request in a test.
type sent map[string]string

func (s sent) Lookup(name string) (string, bool) {
	value, ok := s[name]
	return value, ok
}

// entries converts the values to descriptor entries.
func (s sent) entries() headgate.Descriptors {
	var all headgate.Descriptors
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, headgate.DescriptorEntry{Name: name, Value: s[name]})
	}
	return all
}

func parts(tb testing.TB, texts ...string) []Part {
	tb.Helper()
	var key []Part
	for _, text := range texts {
		p, err := ParsePart(text)
		if err != nil {
			tb.Fatal(err)
		}
		key = append(key, p)
	}
	return key
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// anyKey is the key of rules in tests that do not use the key.
func anyKey() []Part { return []Part{{kind: partAll}} }

func get(path string) *headgate.Request {
	return &headgate.Request{Method: "GET", Host: "api.example.com", Path: path, IP: addr("192.0.2.1")}
}
