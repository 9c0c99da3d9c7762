package remote

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
)

// TestBatchKeepsNoTexts: each message of a client has a long text at another place, and the next message is shorter. Without the
// drop at each Begin, the texts would add up to 32 times those of one message.
func TestBatchKeepsNoTexts(t *testing.T) {
	g, b := guards.New(t, "rules: []"), new(Batch)
	for place := 31; place >= 0; place-- {
		b.Begin(g, nil, true)
		for n := range place + 2 {
			r := &Request{Path: "/"}
			switch n {
			case place:
				r.Path += strings.Repeat("x", maxPath-1)
				r.Headers = []headgate.DescriptorEntry{{Name: "a", Value: strings.Repeat("y", maxValue)}}
			case place + 1: // A fault is found after the path was read.
				r.Path, r.IP = strings.Repeat("/x", maxPath/2), "x"
			}
			b.Add(r)
		}
		_ = b.Decide(t.Context())
	}
	for _, end := range []func(){func() { b.Begin(g, nil, true) }, b.Release} {
		end()
		if slices.ContainsFunc(b.requests[:cap(b.requests)], func(r headgate.Request) bool { return r.Path != "" || r.Header != nil }) ||
			slices.ContainsFunc(b.headers[:cap(b.headers)], func(v values) bool { return v.entries != nil }) ||
			slices.ContainsFunc(b.stated[:cap(b.stated)], func(r request) bool { return r.fault != nil }) {
			t.Fatal("the batch keeps texts of an earlier message")
		}
		b.Add(&Request{Path: "/", Headers: []headgate.DescriptorEntry{{Name: "a", Value: "b"}}})
		b.Add(&Request{IP: "x"})
	}
}
