package rls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// encoded is a request with equal descriptors. Each of them has a limit of its own if sent is set.
func encoded(descriptors, entries int, value string, sent bool) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "k")
	if value != "" {
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), value)
	}
	var one []byte
	for range entries {
		one = protowire.AppendBytes(protowire.AppendTag(one, fieldEntries, protowire.BytesType), entry)
	}
	if sent {
		one = protowire.AppendBytes(protowire.AppendTag(one, 2, protowire.BytesType), []byte{8, 9, 16, 3})
	}
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "d")
	for range descriptors {
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldDescriptors, protowire.BytesType), one)
	}
	return b
}

// TestPartsAreCounted: the numbers are those of the decoded request, or the call is refused.
func TestPartsAreCounted(t *testing.T) {
	for _, c := range []struct {
		request              []byte
		descriptors, entries int
		fault                string
	}{
		{nil, 0, 0, ""},
		{encoded(1, 1, "v", true), 1, 1, ""},
		{encoded(3, 32, "", false), 3, 96, ""},
		{encoded(1000, 2, "v", false), 1000, 2000, ""},
		{encoded(1001, 1, "v", false), 1001, 1001, "there are 1001 descriptors"},
		{encoded(2, 33, "", false), 2, 66, "descriptor 0 has 33 entries"},
		{[]byte{0xff}, 0, 0, ""},
		{append(encoded(1, 1, "v", false), 0x12, 0xff, 0xff), 1, 1, ""},
	} {
		descriptors, entries, fault := countParts(c.request)
		if descriptors != c.descriptors || entries != c.entries {
			t.Errorf("%d bytes: %d descriptors and %d entries, want %d and %d", len(c.request), descriptors, entries, c.descriptors, c.entries)
		}
		if got := fmt.Sprint(fault); c.fault == "" && fault != nil || !strings.Contains(got, c.fault) {
			t.Errorf("%d bytes: fault %q, want %q", len(c.request), got, c.fault)
		}
	}
}

// TestMemoryOfRequests: all that a call allocates, garbage included, is less than what it acquires.
func TestMemoryOfRequests(t *testing.T) {
	if race.On { // As in TestMemoryOfJSON.
		return
	}
	for _, metadata := range []bool{false, true} {
		s := withTree(t, metadata)
		for _, c := range []struct {
			descriptors, entries int
			value                string
			sent                 bool
		}{
			{1, 1, "", false},
			{1, 32, "", false},
			{1000, 1, "", false},
			{1000, 1, "v", true},
			{1000, 32, "", false},
			{200, 5, strings.Repeat("v", 4000), false},
		} {
			request := encoded(c.descriptors, c.entries, c.value, c.sent)
			got := allocs.Bytes(func() { answered(t, s, request) })
			want := uint64(free + memoryOf(len(request), c.descriptors, c.descriptors*c.entries, metadata))
			t.Logf("%d descriptors of %d entries, sent %v, metadata %v: %d of %d bytes", c.descriptors, c.entries, c.sent, metadata, got, want)
			if got > want {
				t.Errorf("%d descriptors of %d entries, sent %v, metadata %v: %d bytes, want at most %d",
					c.descriptors, c.entries, c.sent, metadata, got, want)
			}
		}
	}
}

// withTree is a service with one tree.
func withTree(tb testing.TB, metadata bool) *Service {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 32 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	limited := func(value string, below ...guard.Descriptor) guard.Descriptor {
		return guard.Descriptor{Key: "k", Value: value, Descriptors: below, Leaf: &guard.Leaf{Policies: []headgate.Policy{{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Hour}, CountRejected: true, CountAll: true,
		}}}}
	}
	g, err := guard.New(guard.Config{
		Store: store, Domains: []guard.Domain{{Name: "d", Descriptors: []guard.Descriptor{limited("", limited("/a*"))}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return New(g, Options{Metadata: metadata}, 3)
}

// answered decodes a request, decides it and encodes the answer.
func answered(tb testing.TB, s *Service, request []byte) {
	tb.Helper()
	if _, err := s.handle(nil, tb.Context(), func(m any) error { return m.(rpc.Request).Decode(request) }, nil); err != nil {
		tb.Fatal(err)
	}
}

// TestMemoryOfJSON: a body allocates no more than its charge, the answer included.
func TestMemoryOfJSON(t *testing.T) {
	if race.On { // The race detector makes it ten times slower.
		return
	}
	s := withTree(t, true) // With dynamic metadata, an answer takes the most.
	for what, body := range map[string]string{
		"empty descriptors": `{"domain":"d","descriptors":[` + strings.Repeat("{},", 60_000) + `{}]}`,
		"entries":           `{"domain":"d","descriptors":[{"entries":[` + strings.Repeat(`{},`, 60_000) + `{}]}]}`,
		"a long value":      `{"domain":"` + strings.Repeat("d", 200_000) + `"}`,
		"decided": `{"domain":"d","descriptors":[` + strings.Repeat(`{"entries":[{"key":"k"}]},`, 999) +
			`{"entries":[{"key":"k"}]}]}`,
	} {
		got := allocs.Bytes(func() { _, _, _ = s.decideJSON(t.Context(), []byte(body)) })
		if want := uint64(len(body) * jsonFactor); got > want {
			t.Errorf("%s: a body of %d bytes allocates %d, %d for each, want at most %d", what, len(body), got, got/uint64(len(body)), jsonFactor)
		} else {
			t.Logf("%s: %d for each byte", what, got/uint64(len(body)))
		}
	}
}
