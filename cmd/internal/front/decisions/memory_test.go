package decisions

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestMemoryOfMessages: a message and its answers take at most what the server counts for it.
func TestMemoryOfMessages(t *testing.T) {
	if race.On {
		return // The race detector takes memory of its own.
	}
	many := map[string]string{}
	for i := range 64 {
		many[fmt.Sprint(i)] = ""
	}
	one := func(r *headgatev1.Request, n int) *headgatev1.DecideRequest {
		m := new(headgatev1.DecideRequest)
		for range n {
			m.Requests = append(m.Requests, r)
		}
		return m
	}
	for what, m := range map[string]*headgatev1.DecideRequest{
		"one empty request":      one(&headgatev1.Request{}, 1),
		"empty requests":         one(&headgatev1.Request{}, 1000),
		"decided requests":       one(&headgatev1.Request{Method: "PUT", Host: "api.example.com", Path: "/a/b"}, 1000),
		"many entries":           one(&headgatev1.Request{Headers: many, Cookies: many, Descriptors: make([]*headgatev1.Descriptor, 32)}, 1000),
		"too many entries":       one(&headgatev1.Request{Descriptors: make([]*headgatev1.Descriptor, 1000)}, 1000),
		"long texts":             one(&headgatev1.Request{Path: "/" + strings.Repeat("x", 4000), Subject: strings.Repeat("y", 3000)}, 500),
		"faults with long texts": one(&headgatev1.Request{Path: strings.Repeat("x", 4000)}, 1000),
	} {
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		s := New(guards.New(t, everyField), Options{Shared: true}) // Then a message is one part.
		got := allocs.Bytes(func() {
			c := s.call(context.WithoutCancel(t.Context()), nil, nil)
			if err := c.Decode(encoded); err != nil || c.fault != nil {
				t.Fatal(err, c.fault)
			}
			c.decide(nil)
		})
		parts, err := new(call).check(encoded)
		if err != nil {
			t.Fatal(err)
		}
		want := free + uint64(memoryOf(len(encoded), parts))
		t.Logf("%s: %d of %d bytes", what, got, want)
		if got > want {
			t.Errorf("%s: %d bytes, want at most %d", what, got, want)
		}
	}
}
