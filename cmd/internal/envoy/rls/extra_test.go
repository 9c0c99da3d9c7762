package rls_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
)

// This file has tables for what the module of the reference lacks, so that no comparison covers it: a *
// inside a value, and metadata. TestRefund covers is_negative_hits.

// TestStarsInsideValues checks which node decides, and under which name it counts.
func TestStarsInsideValues(t *testing.T) {
	shared := node("path", "/users/*/files/*", counted(2, time.Minute))
	shared.ShareThreshold = true
	s := serve(t, rls.Options{}, domain(
		node("path", "/users/7/files/a", counted(9, time.Minute)), shared,
		node("path", "/users/*/photos", counted(5, time.Minute)), node("path", "*.png", counted(6, time.Minute)),
		node("path", "/a*a", counted(7, time.Minute)), node("path", "", counted(8, time.Minute)),
	))
	path := func(value string) []*commonv3.RateLimitDescriptor { return descriptors(asked("path", value)) }
	s.tell("d", []step{
		{"an exact value comes first", path("/users/7/files/a"), "ok ok(8 of 9/MINUTE, 50s)"},
		{"two stars", path("/users/7/files/b"), "ok ok(1 of 2/MINUTE, 50s)"},
		{"all values share the count", path("/users/8/files/c"), "ok ok(0 of 2/MINUTE, 50s)"},
		{"and are over together", path("/users//files/"), "over over(0 of 2/MINUTE, 50s)"},
		{"a star in the middle", path("/users/7/photos"), "ok ok(4 of 5/MINUTE, 50s)"},
		{"another value has its own count", path("/users/8/photos"), "ok ok(4 of 5/MINUTE, 50s)"},
		{"a star stands for slashes too", path("/users/7/old/photos"), "ok ok(4 of 5/MINUTE, 50s)"},
		{"the first wildcard in order wins", path("/users/7/files/a.png"), "over over(0 of 2/MINUTE, 50s)"},
		{"a star at the start", path("a.png"), "ok ok(5 of 6/MINUTE, 50s)"},
		{"a star for nothing", path("/aa"), "ok ok(6 of 7/MINUTE, 50s)"},
		{"the two ends need a byte each", path("/a"), "ok ok(7 of 8/MINUTE, 50s)"},
		{"text after the last part", path("/users/7/photos/x"), "ok ok(7 of 8/MINUTE, 50s)"},
	})
	var names []string
	for line := range strings.Lines(s.counts()) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	want := []string{"d.path", "d.path_*.png", "d.path_/a*a", "d.path_/users/*/files/*", "d.path_/users/*/photos", "d.path_/users/7/files/a"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the limits count under %q, want %q", names, want)
	}
}

// about is a limit with metadata.
func about(metadata map[string]any, l *guard.Leaf) *guard.Leaf {
	return leaf(l, func(l *guard.Leaf) { l.Metadata = metadata })
}

// TestMetadata checks the merged metadata of the limits that let a request pass.
func TestMetadata(t *testing.T) {
	type object = map[string]any
	hour := func(n int64) *guard.Leaf { return counted(n, time.Hour) }
	tree := domain(
		node("a", "", about(object{"tier": "gold", "team": object{"name": "x", "seats": 3.0}}, hour(5))),
		node("b", "", about(object{"tier": "silver", "team": object{"name": "y", "site": "z"}, "list": []any{"p", nil, true}}, hour(5))),
		node("c", "", about(object{"team": "plain"}, hour(5))),
		node("over", "", about(object{"tier": "over"}, hour(0))),
		node("shadow", "", inShadow(about(object{"tier": "shadow"}, hour(0)))),
		node("quota", "", inQuota(about(object{"tier": "quota"}, hour(0)))),
		node("free", "", about(object{"tier": "free"}, &guard.Leaf{Unlimited: true})),
		node("named", "", called("named", about(object{"tier": "named"}, hour(5)))),
		node("better", "", called("better", about(object{"team": "better"}, hour(5)), "named")),
		node("none", "", hour(5)),
	)
	for _, c := range []struct{ why, keys, want string }{
		{"one limit", "a", `{"team": {"name": "x", "seats": 3}, "tier": "gold"}`},
		{"the first value wins, and objects are merged", "a b", `{"list": ["p", null, true], "team": {"name": "x", "seats": 3, "site": "z"}, "tier": "gold"}`},
		{"in the other order", "b a", `{"list": ["p", null, true], "team": {"name": "y", "seats": 3, "site": "z"}, "tier": "silver"}`},
		{"an object replaces no other value", "c a", `{"team": "plain", "tier": "gold"}`},
		{"a limit that is over says nothing", "over c", `{"team": "plain"}`},
		{"a limit in the shadow lets pass", "shadow c", `{"team": "plain", "tier": "shadow"}`},
		{"a quota that is over says nothing", "quota c", `{"team": "plain"}`},
		{"unlimited", "free", `{"tier": "free"}`},
		{"a replaced limit says nothing", "named better", `{"team": "better"}`},
		{"no metadata", "none", `null`},
		{"no limit", "unknown", `null`},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := serve(t, rls.Options{Metadata: true}, tree)
			var all []*commonv3.RateLimitDescriptor
			for key := range strings.FieldsSeq(c.keys) {
				all = append(all, asked(key, "v"))
			}
			var want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			got := s.ask("d", all...).GetDynamicMetadata().AsMap()
			if !reflect.DeepEqual(got["metadata"], want) {
				t.Errorf("got %v, want %v", got["metadata"], want)
			}
			if got["domain"] != "d" || len(got["descriptors"].([]any)) != len(all) {
				t.Errorf("got %v, want the domain and %d descriptors", got, len(all))
			}
		})
	}
}

// TestHeaders checks the headers of an answer: they show the closest limit.
func TestHeaders(t *testing.T) {
	s := serve(t, rls.Options{Headers: rls.Headers{Limit: "L", Remaining: "R", Reset: "S"}},
		domain(node("a", "", counted(5, time.Minute)), node("b", "", counted(2, time.Hour))))
	text := func(all []*corev3.HeaderValue) string {
		var parts []string
		for _, h := range all {
			parts = append(parts, fmt.Sprintf("%s=%s", h.GetKey(), h.GetValue()))
		}
		return strings.Join(parts, " ")
	}
	for _, c := range []struct {
		why  string
		ask  []*commonv3.RateLimitDescriptor
		want string
	}{
		{"one limit", descriptors(asked("a", "v")), "L=5 R=4 S=50"},
		{"the closest of two", descriptors(asked("a", "v"), asked("b", "v")), "L=2 R=1 S=2810"},
		{"without a limit", descriptors(asked("c", "v")), ""},
	} {
		if got := text(s.ask("d", c.ask...).GetResponseHeadersToAdd()); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}
