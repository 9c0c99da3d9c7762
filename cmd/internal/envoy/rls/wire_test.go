package rls

import (
	"slices"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
)

// FuzzDecode compares the reader of the wire form with the generated types: both refuse the same bytes
// and read the same content.
func FuzzDecode(f *testing.F) {
	for _, seed := range seeds() {
		text, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range oddities {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got wireRequest
		want := new(ratelimitv3.RateLimitRequest)
		given := slices.Clone(text)
		err := got.decode(given)
		clear(given) // It is not valid after decode.
		if failed := proto.Unmarshal(text, want); (err == nil) != (failed == nil) {
			t.Fatalf("%q: got %v, the generated types give %v", text, err, failed)
		}
		if err == nil {
			compare(t, &got, want)
		}
	})
}

// oddities are requests that clients seldom send.
var oddities = map[string]string{
	"the domain twice":                   "\x0a\x01a\x0a\x01b",
	"the domain as a number":             "\x08\x01",
	"the domain in a group":              "\x0b\x0c",
	"a group that does not end":          "\x0b",
	"the end of no group":                "\x0c",
	"an unknown field":                   "\x7a\x03abc\x85\x01\x01\x02\x03\x04",
	"field 0":                            "\x02\x00",
	"a field above the last number":      "\x82\x80\x80\x80\x10\x00",
	"a field of type 7":                  "\x0f",
	"hits above 32 bits":                 "\x18\xff\xff\xff\xff\xff\x01",
	"a varint of 11 bytes":               "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	"a length above the message":         "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	"hits twice in one descriptor":       "\x12\x08\x1a\x02\x08\x07\x1a\x02\x08\x09",
	"hits without a value after a value": "\x12\x06\x1a\x02\x08\x07\x1a\x00",
	"a limit in two parts":               "\x12\x08\x12\x02\x08\x05\x12\x02\x10\x03",
	"a limit with a negative unit":       "\x12\x0f\x12\x0d\x08\x05\x10" + strings.Repeat("\xff", 9) + "\x01",
	"a limit with a multiplier":          "\x12\x0a\x12\x08\x08\x05\x10\x03\x1a\x02\x08\x1e",
	"broken bytes in the limit":          "\x12\x03\x12\x01\xff",
	"is_negative_hits is 2":              "\x12\x02\x20\x02",
	"no UTF-8 in an overwritten domain":  "\x0a\x01\xff\x0a\x01b",
}

// TestDecodeOddities runs the oddities as a table: the fuzz test runs them as seeds, too.
func TestDecodeOddities(t *testing.T) {
	for what, text := range oddities {
		var got wireRequest
		want := new(ratelimitv3.RateLimitRequest)
		err, failed := got.decode([]byte(text)), proto.Unmarshal([]byte(text), want)
		if (err == nil) != (failed == nil) {
			t.Errorf("%s: got %v, the generated types give %v", what, err, failed)
		}
		if err == nil {
			compare(t, &got, want)
		}
	}
}

func compare(t *testing.T, got *wireRequest, want *ratelimitv3.RateLimitRequest) {
	t.Helper()
	if got.domain != want.GetDomain() || got.hits != want.GetHitsAddend() || len(got.descriptors) != len(want.GetDescriptors()) {
		t.Fatalf("got domain %q, %d hits, %d descriptors; want %v", got.domain, got.hits, len(got.descriptors), want)
	}
	entries := got.entries
	for i, w := range want.GetDescriptors() {
		d := &got.descriptors[i]
		if d.negative != w.GetIsNegativeHits() || d.hits != w.GetHitsAddend().GetValue() || d.hasHits != (w.GetHitsAddend() != nil) {
			t.Errorf("descriptor %d: got %+v, want %v", i, *d, w)
		}
		if d.hasLimit != (w.GetLimit() != nil) || d.hasLimit && !sameLimit(&d.limit, w.GetLimit()) {
			t.Errorf("descriptor %d: got limit %+v, want %v", i, d.limit, w.GetLimit())
		}
		if d.entries != len(w.GetEntries()) {
			t.Fatalf("descriptor %d: got %d entries, want %v", i, d.entries, w)
		}
		for j, e := range w.GetEntries() {
			if got := (headgate.DescriptorEntry{Name: e.GetKey(), Value: e.GetValue()}); entries[j] != got {
				t.Errorf("descriptor %d, entry %d: got %q, want %q", i, j, entries[j], got)
			}
		}
		entries = entries[d.entries:]
	}
}

// sameLimit compares what a generated type has, its unknown fields apart.
func sameLimit(got *wireLimit, want proto.Message) bool {
	known := proto.Clone(want)
	discardUnknown(known.ProtoReflect())
	return proto.Equal(got.message(), known)
}

// TestAnswers compares encoded answers with the generated types.
func TestAnswers(t *testing.T) {
	s := withTree(t, false)
	minute := headgate.Limit{Count: 20, Per: 60e9}
	for what, c := range map[string]struct {
		over     bool
		statuses []descriptorStatus
	}{
		"no limit":          {false, []descriptorStatus{{}}},
		"all fields":        {true, []descriptorStatus{{over: true, limit: minute, name: "n", remaining: 0, reset: 5e9}, {limit: minute, remaining: 19, reset: 60e9}}},
		"unlimited":         {false, []descriptorStatus{{remaining: unlimited}}},
		"above 32 bits":     {false, []descriptorStatus{{limit: headgate.Limit{Count: 1 << 40, Per: year}, remaining: 1 << 41, reset: year}}},
		"no unit":           {false, []descriptorStatus{{limit: headgate.Limit{Count: 20, Per: 90e9}, remaining: 3, reset: 1e9}}},
		"a limit of 0":      {true, []descriptorStatus{{over: true, limit: headgate.Limit{Per: 1e9}, reset: 1e9}}},
		"127 bytes":         {false, []descriptorStatus{{limit: minute, name: strings.Repeat("n", 127)}}},
		"a long name":       {false, []descriptorStatus{{limit: minute, name: strings.Repeat("n", 100)}, {limit: minute, name: strings.Repeat("n", 40_000)}}},
		"below 128, nested": {false, []descriptorStatus{{limit: minute, name: strings.Repeat("n", 119), remaining: 300, reset: 9e9}}},
	} {
		call := s.call(t.Context())
		call.statuses = c.statuses
		encoded, err := s.encode(call, c.over)
		got := new(ratelimitv3.RateLimitResponse)
		if failed := proto.Unmarshal(encoded, got); err != nil || failed != nil {
			t.Errorf("%s: got %v; the decoder says %v", what, err, failed)
		}
		if want := slowAnswer(c.statuses, c.over); !proto.Equal(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
		}
		if want := proto.Size(got); len(encoded) != want {
			t.Errorf("%s: got %d bytes, want %d", what, len(encoded), want)
		}
	}
}
