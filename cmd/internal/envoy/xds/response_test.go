package xds

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/headgate/headgate/internal/testkit/property"
)

// TestDecodeAgrees compares decode with the generated decoder.
func TestDecodeAgrees(t *testing.T) {
	property.Check(t, func(t *property.T) {
		want := &discoveryv3.DiscoveryResponse{
			VersionInfo: property.String().Draw(t, "version"), TypeUrl: property.SampledFrom([]string{TypeURL, "", "x"}).Draw(t, "type"),
			Nonce: property.String().Draw(t, "nonce"), Canary: property.Bool().Draw(t, "canary"),
		}
		for range property.IntRange(0, 5).Draw(t, "resources") {
			want.Resources = append(want.Resources, &anypb.Any{
				TypeUrl: property.SampledFrom([]string{TypeURL, "", "x"}).Draw(t, "type"), Value: property.SliceOf(property.Byte()).Draw(t, "value"),
			})
		}
		encoded, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got response
		if err := got.decode(encoded); err != nil {
			t.Fatal(err)
		}
		if got.version != want.GetVersionInfo() || got.nonce != want.GetNonce() || got.typeURL != want.GetTypeUrl() ||
			len(got.resources) != len(want.GetResources()) {
			t.Fatalf("got %+v, want %v", got, want)
		}
		for i, one := range want.GetResources() {
			if got.resources[i].typeURL != one.GetTypeUrl() || !bytes.Equal(got.resources[i].value, one.GetValue()) {
				t.Fatalf("resource %d is %+v, want %v", i, got.resources[i], one)
			}
		}
	})
}

// FuzzDecode feeds bytes to decode and convert, which must not crash. A response that the generated
// decoder accepts, within the bounds, is accepted.
func FuzzDecode(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: TypeURL, Nonce: "2"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("\x12\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var r response
		err := r.decode(encoded)
		if err == nil {
			_, _ = r.convert()
		} else if proto.Unmarshal(encoded, &discoveryv3.DiscoveryResponse{}) == nil && len(encoded) < maxToken {
			t.Errorf("decode returned %v, and the generated decoder accepts the response", err)
		}
	})
}

func TestDecodeFaults(t *testing.T) {
	for name, m := range map[string]*discoveryv3.DiscoveryResponse{
		"version": {VersionInfo: strings.Repeat("v", maxToken+1)},
		"nonce":   {Nonce: strings.Repeat("n", maxToken+1)},
		"type":    {TypeUrl: strings.Repeat("t", maxToken+1)},
	} {
		if err := new(response).decode(encode(t, m)); err == nil || !strings.Contains(err.Error(), "more than 4096 bytes") {
			t.Errorf("a long %s: got %v", name, err)
		}
	}
	for _, malformed := range []string{"\xff", "\x12\x05ab", "\x0a\x01\xff", "\x2a\x01\xff", "\x12\x01\xff"} {
		if err := new(response).decode([]byte(malformed)); err == nil {
			t.Errorf("%q is accepted", malformed)
		}
	}
	var r response
	if err := r.decode([]byte(strings.Repeat("\x12\x00", maxResources+5))); err != nil || !r.tooMany || len(r.resources) != maxResources {
		t.Errorf("too many resources: got %d, %v, %v", len(r.resources), r.tooMany, err)
	}
}

// TestContent checks that the order of resources does not change the digest, and that all else does.
func TestContent(t *testing.T) {
	sum := func(all ...encodedResource) digest { return (&response{resources: all}).sum() }
	a, b, c := encodedResource{"t", []byte("a")}, encodedResource{"t", []byte("b")}, encodedResource{"ta", []byte("")}
	if sum(a, b, c) != sum(c, a, b) {
		t.Error("another order has another digest")
	}
	seen := map[digest]int{}
	for i, all := range [][]encodedResource{{}, {a}, {a, a}, {b}, {a, b}, {c}, {a, c}, {a, b, c}, {{"", []byte("ta")}}} {
		if before, known := seen[sum(all...)]; known {
			t.Errorf("sets %d and %d have the same digest", before, i)
		}
		seen[sum(all...)] = i
	}
}

// messagesIn counts the messages below m.
func messagesIn(m protoreflect.Message) int {
	n := 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				n += 1 + messagesIn(v.List().Get(i).Message())
			}
		case f.Kind() == protoreflect.MessageKind:
			n += 1 + messagesIn(v.Message())
		}
		return true
	})
	return n
}

// TestCountAgrees compares countMessages with a count of the decoded messages.
func TestCountAgrees(t *testing.T) {
	var tree func(r *rand.Rand, levels int) []*ratelimitv3.RateLimitDescriptor
	tree = func(r *rand.Rand, levels int) []*ratelimitv3.RateLimitDescriptor {
		var all []*ratelimitv3.RateLimitDescriptor
		for range r.IntN(4) * min(levels, 1) {
			d := &ratelimitv3.RateLimitDescriptor{Key: "k", Descriptors: tree(r, levels-1)}
			if r.IntN(2) == 0 {
				d.RateLimit = &ratelimitv3.RateLimitPolicy{Name: "n", Replaces: make([]*ratelimitv3.RateLimitReplace, r.IntN(3))}
				for i := range d.GetRateLimit().GetReplaces() {
					d.RateLimit.Replaces[i] = &ratelimitv3.RateLimitReplace{Name: "r"}
				}
			}
			all = append(all, d)
		}
		return all
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := &ratelimitv3.RateLimitConfig{Name: "n", Domain: "d", Descriptors: tree(r, 5)}
		budget := maxMessages
		err := countMessages(encode(t, m), configMessage, maxLevels, &budget)
		if got, want := maxMessages-budget, messagesIn(m.ProtoReflect()); err != nil || got != want {
			t.Fatalf("counted %d (%v), want %d: %v", got, err, want, m)
		}
	}
}
