package domain

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// TestAppendMetric compares names of metrics with those of the reference implementation.
func TestAppendMetric(t *testing.T) {
	x := built(
		t,
		Node{Key: "key1", Value: "value1", Nodes: []Node{{Key: "sub"}, {Key: "sub", Value: "v"}}},
		Node{Key: "bare"},
		Node{Key: "wild", Value: "foo*"},
		Node{Key: "metric", ValueToMetric: true, Nodes: []Node{{Key: "sub"}}},
		Node{Key: "wildmetric", Value: "foo*", ValueToMetric: true},
		Node{Key: "detailed", Nodes: []Node{{Key: "sub", DetailedMetric: true}}},
		Node{Key: "shared", Value: "foo*", ShareThreshold: true, ValueToMetric: true, Nodes: []Node{{Key: "sub", DetailedMetric: true}}},
		Node{Key: "addr"},
		Node{Key: "remote", DetailedMetric: true},
	)
	for _, row := range []struct {
		story string
		entry headgate.Descriptors
		want  string
	}{
		{"values as the file has them", d("key1", "value1", "sub", "v"), "dom.key1_value1.sub_v"},
		{"no value where the file has none", d("key1", "value1", "sub", "x"), "dom.key1_value1.sub"},
		{"a wildcard as written", d("wild", "foobar"), "dom.wild_foo*"},
		{"value_to_metric on its level alone", d("metric", "x", "sub", "y"), "dom.metric_x.sub"},
		{"value_to_metric without a value", d("metric", "", "sub", "y"), "dom.metric.sub"},
		{"value_to_metric of a wildcard", d("wildmetric", "foobar"), "dom.wildmetric_foobar"},
		{"detailed_metric on all levels", d("detailed", "x", "sub", "y"), "dom.detailed_x.sub_y"},
		{"detailed_metric writes the underscore of an empty value", d("detailed", "", "sub", ""), "dom.detailed_.sub_"},
		{"share_threshold stays beside value_to_metric and detailed_metric", d("shared", "foobar", "sub", "y"), "dom.shared_foo*.sub_y"},
		{"beside share_threshold, an empty value has no underscore", d("shared", "foobar", "sub", ""), "dom.shared_foo*.sub"},
		{"the text of a wildcard replaces nothing", d("shared", "foo*", "sub", ""), "dom.shared_foo*.sub_"},
		{"the dots of an address", d("remote", "10.0.0.255"), "dom.remote_10_0_0_255"},
		{"colons, bars and controls", d("remote", "a:b|c\nd\x7f\xff"), "dom.remote_a_b_c_d__"},
		{"other dots", d("remote", "1.2.3 1234.1.1.1.5.6 a.b"), "dom.remote_1.2.3 1234_1_1_1.5.6 a.b"},
	} {
		if got := string(AppendMetric(nil, "dom", row.entry, matchOf(t, x, row.entry))); got != row.want {
			t.Errorf("%s: got %q, want %q", row.story, got, row.want)
		}
	}
	if got, want := string(AppendMetric([]byte("p."), "dom", d("a", "b", "c", ""), nil)), "p.dom.a_b.c"; got != want {
		t.Errorf("without a node: got %q, want %q", got, want)
	}
}

// TestMetricIsBounded checks that a client cannot make long or invalid names.
func TestMetricIsBounded(t *testing.T) {
	entries := d("a", strings.Repeat("é", 5000), "b", strings.Repeat("\xff", 5000))
	got := AppendMetric([]byte("prefix."), "dom", entries, nil)
	if most := len("prefix.") + maxMetricBytes; len(got) > most || len(got) < most-1 || !utf8.Valid(got) {
		t.Errorf("got %d bytes, valid %t, want %d", len(got), utf8.Valid(got), most)
	}
}
