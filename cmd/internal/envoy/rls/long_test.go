package rls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// TestLongPatterns decides values against patterns of the same length. Both become four times as
// long, up to 4 KiB: the time of an answer may grow eightfold. It would grow sixteenfold if a
// matcher compared each byte of a value with each byte of a pattern.
func TestLongPatterns(t *testing.T) {
	for name, c := range map[string]struct{ pattern, value string }{
		"stars":               {"*", "a"},
		"a star after each a": {"a*", "a"},
		"no match":            {"*a", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			short, long := decider(t, c.pattern, c.value, maxText/4), decider(t, c.pattern, c.value, maxText)
			least := [2]time.Duration{maxAnswerTime, maxAnswerTime}
			for try := range 400 {
				least[0], least[1] = min(least[0], duration(short)), min(least[1], duration(long))
				if try >= 20 && least[1] <= 8*least[0] {
					return
				}
			}
			t.Errorf("%v with %d bytes and %v with %d bytes, want at most eight times as long", least[0], maxText/4, least[1], maxText)
		})
	}
}

func duration(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// decider returns a function that decides a request of 50 descriptors. The value and the pattern have
// a length in bytes. Two patterns match no value: one needs a further byte, and one ends otherwise.
func decider(t *testing.T, pattern, value string, length int) func() {
	t.Helper()
	fill := func(part string) string { return strings.Repeat(part, length)[:length] }
	patterns := []string{fill(pattern)[:length-1] + "!", "*" + fill(pattern)[:length-3] + "!*", fill(pattern)}
	var nodes []guard.Descriptor
	for _, p := range patterns {
		nodes = append(nodes, guard.Descriptor{Key: "k", Value: p, Leaf: &guard.Leaf{Unlimited: true}})
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Domains: []guard.Domain{{Name: "d", Descriptors: nodes}}})
	if err != nil {
		t.Fatal(err)
	}
	s, request := New(g, Options{}, 0), encoded(50, 1, fill(value), false)
	return func() { answered(t, s, request) }
}

// TestTextThatIsNoUTF8: Protocol Buffers refuses a string that is no UTF-8, at every place of a request.
func TestTextThatIsNoUTF8(t *testing.T) {
	s := withTree(t, true)
	for place, text := range map[string]string{
		"the domain": "\x0a\x01\xff\x12\x08\x0a\x06\x0a\x01k\x12\x01v",
		"a key":      "\x0a\x01d\x12\x08\x0a\x06\x0a\x01\xff\x12\x01v",
		"a value":    "\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01\xff",
	} {
		_, err := s.handle(nil, t.Context(), func(m any) error { return m.(rpc.Request).Decode([]byte(text)) }, nil)
		if got := fmt.Sprint(err); !strings.Contains(got, "invalid UTF-8") {
			t.Errorf("%s: got %q, want an error about UTF-8", place, got)
		}
	}
	if err := proto.Unmarshal([]byte("\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v"), &ratelimitv3.RateLimitRequest{}); err != nil {
		t.Errorf("the same request in UTF-8: %v", err)
	}
}
