package xds

import (
	"math"
	"reflect"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// newer appends the fields that the generated types do not have.
func newer(t *testing.T, d *ratelimitv3.RateLimitDescriptor, quota bool, metadata map[string]any) *ratelimitv3.RateLimitDescriptor {
	t.Helper()
	fields := protowire.AppendTag(nil, quotaModeField, protowire.VarintType)
	fields = protowire.AppendVarint(fields, protowire.EncodeBool(quota))
	if metadata != nil {
		message, err := structpb.NewStruct(metadata)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		fields = protowire.AppendTag(fields, metadataField, protowire.BytesType)
		fields = protowire.AppendBytes(fields, encoded)
	}
	d.ProtoReflect().SetUnknown(append(d.ProtoReflect().GetUnknown(), fields...))
	return d
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestConvert(t *testing.T) {
	inner := newer(t, &ratelimitv3.RateLimitDescriptor{
		Key: "inner", ShadowMode: true, DetailedMetric: true,
		RateLimit: &ratelimitv3.RateLimitPolicy{
			Unit: ratelimitv3.RateLimitUnit_WEEK, RequestsPerUnit: math.MaxUint32, Name: "n",
			Replaces: []*ratelimitv3.RateLimitReplace{{Name: "a"}, {}, {Name: "b"}},
		},
	}, true, map[string]any{"s": "text", "n": 1.5, "b": true, "nil": nil, "l": []any{"x", map[string]any{"y": 2.0}}})
	newer(t, inner, true, map[string]any{"more": "merged"})
	outer := newer(t, &ratelimitv3.RateLimitDescriptor{
		Key: "", Value: "v", Descriptors: []*ratelimitv3.RateLimitDescriptor{inner, {Key: "bare"}},
		RateLimit: &ratelimitv3.RateLimitPolicy{Unlimited: true},
	}, true, map[string]any{})
	newer(t, outer, false, nil) // The last value counts.
	got, err := decodeResource(encode(t, &ratelimitv3.RateLimitConfig{
		Name: "name", Domain: "domain", Descriptors: []*ratelimitv3.RateLimitDescriptor{outer},
	}))
	want := Resource{Name: "name", Domain: "domain", Descriptors: []Descriptor{{
		Value: "v", RateLimit: &RateLimit{Unit: "UNKNOWN", Unlimited: true}, Metadata: map[string]any{},
		Descriptors: []Descriptor{{
			Key: "inner", ShadowMode: true, DetailedMetric: true, QuotaMode: true,
			RateLimit: &RateLimit{Unit: "WEEK", RequestsPerUnit: math.MaxUint32, Name: "n", Replaces: []string{"a", "", "b"}},
			Metadata: map[string]any{
				"s": "text", "n": 1.5, "b": true, "nil": nil, "l": []any{"x", map[string]any{"y": 2.0}}, "more": "merged",
			},
		}, {Key: "bare"}},
	}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, %v\nwant\n%+v", got, err, want)
	}
}

func TestUnits(t *testing.T) {
	for number, want := range map[int32]string{
		0: "UNKNOWN", 1: "SECOND", 2: "MINUTE", 3: "HOUR", 4: "DAY", 5: "MONTH", 6: "YEAR", 7: "WEEK", 8: "8",
	} {
		got, err := decodeResource(encode(t, &ratelimitv3.RateLimitConfig{Descriptors: []*ratelimitv3.RateLimitDescriptor{
			{RateLimit: &ratelimitv3.RateLimitPolicy{Unit: ratelimitv3.RateLimitUnit(number)}},
		}}))
		if err != nil || got.Descriptors[0].RateLimit.Unit != want {
			t.Errorf("unit %d is %+v, %v, want %s", number, got.Descriptors[0].RateLimit, err, want)
		}
	}
}

// TestMalformedResources refuses resources. The error gives the cause, and quotes what the server sent.
func TestMalformedResources(t *testing.T) {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	levels := func(n int) []byte {
		var d []byte
		for range n {
			d = field(4, d)
		}
		return field(3, d)
	}
	lists := func(n int) []byte {
		value := []byte{}
		for range n {
			value = field(6, field(1, value))
		}
		return field(3, field(8, field(1, field(2, value))))
	}
	one := func(value []byte) []encodedResource { return []encodedResource{{TypeURL, value}} }
	for name, c := range map[string]struct {
		r    response
		want string // "" for a valid resource
	}{
		"none":                  {response{}, ""},
		"empty":                 {response{resources: one(nil)}, ""},
		"two without a name":    {response{resources: append(one(nil), one(nil)...)}, ""},
		"two with one name":     {response{resources: append(one(field(1, []byte("same\n"))), one(field(1, []byte("same\n")))...)}, `two resources have the name "same\n"`},
		"no protocol buffer":    {response{resources: one([]byte("\xff\xff\xff"))}, "resource 0: "},
		"a cut field":           {response{resources: one(field(3, []byte("abc"))[:4])}, "resource 0: "},
		"an invalid name":       {response{resources: one(field(1, []byte("\xff")))}, "resource 0: not a valid RateLimitConfig"},
		"another type":          {response{resources: []encodedResource{{"type.googleapis.com/x\n", nil}}}, `resource 0 has type "type.googleapis.com/x\n": send`},
		"50 levels":             {response{resources: one(levels(50))}, ""},
		"a million levels":      {response{resources: one(levels(1000))}, "more than 100 levels"},
		"metadata":              {response{resources: one(lists(20))}, ""},
		"metadata of 1000":      {response{resources: one(lists(1000))}, "more than 100 levels"},
		"malformed metadata":    {response{resources: one(field(3, field(8, []byte{0xff})))}, "resource 0: "},
		"metadata of no UTF-8":  {response{resources: one(field(3, field(8, field(1, field(1, []byte{0xff})))))}, "the metadata of descriptor"},
		"too many resources":    {response{tooMany: true}, "more than 100000 resources"},
		"too many descriptors":  {response{resources: one([]byte(strings.Repeat("\x1a\x00", maxMessages+1)))}, "more than 1000000 descriptors"},
		"many in two resources": {response{resources: append(one([]byte(strings.Repeat("\x1a\x00", 600_000))), one([]byte(strings.Repeat("\x1a\x00", 600_000)))...)}, "resource 1: the response has more than"},
	} {
		_, err := c.r.convert()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500):
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}
