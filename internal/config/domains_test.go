package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// window returns a fixed window as descriptors have it.
func window(count int64, per time.Duration) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: per}, CountRejected: true, CountAll: true}
}

func TestDomains(t *testing.T) {
	c, err := Parse("domains.yaml", read(t, "testdata/ok/domains.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bucket := headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 100, Per: time.Second, Burst: 20}}
	want := []guard.Domain{
		{Name: "shop", Fallback: guard.FallbackAllow, Descriptors: []guard.Descriptor{
			{Key: "path", Value: "/search*", ShareThreshold: true, Leaf: &guard.Leaf{
				Name: "search", Policies: []headgate.Policy{window(20, time.Minute), window(500, time.Hour)},
			}},
			{Key: "path", ValueToMetric: true, Descriptors: []guard.Descriptor{
				{Key: "user", DetailedMetric: true, Leaf: &guard.Leaf{Mode: guard.Shadow, Policies: []headgate.Policy{window(5, time.Second)}}},
				{Key: "user", Value: "admin", Leaf: &guard.Leaf{
					Unlimited: true, Replaces: []string{"search"},
					Metadata: map[string]any{"service": map[string]any{"name": "7", "size": 7.0, "open": true, "parts": []any{"a", nil}}},
				}},
			}},
			{Key: "api", Leaf: &guard.Leaf{QuotaMode: true, Policies: []headgate.Policy{bucket}}},
			{Key: "known", Value: "yes"},
		}},
		{Name: "empty", Fallback: guard.FallbackError},
	}
	if !reflect.DeepEqual(c.Domains, want) {
		t.Errorf("got %+v\nwant %+v", c.Domains, want)
	}
}

// TestDomainsWithASharedStore checks what depends on the store: each instance's part of a limit, and
// the limits that the store can count.
func TestDomainsWithASharedStore(t *testing.T) {
	for _, row := range []struct{ story, text, want string }{
		{"local needs local_share", "store: redis://h\ndomains: {shop: {fallback: local, descriptors: []}}", "local has no local_share"},
		{"a part below one request", "store: redis://h\nlocal_share: 10%\n" +
			"domains: {shop: {fallback: local, descriptors: [{key: a, limits: 5/s}]}}", "is less than one request"},
		{"a log that Redis cannot count", "store: redis://h\n" +
			"domains: {shop: {descriptors: [{key: a, limits: 500000/s, algorithm: sliding_log}]}}", "domains.shop.descriptors[0].limits"},
		{"local with a part", "store: redis://h\nlocal_share: 50%\ndomains: {shop: {fallback: local, descriptors: [{key: a, limits: 5/s}]}}", ""},
	} {
		_, err := Parse("f", []byte("version: 1\nrules: []\n"+row.text+"\n"))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %s", row.story, err, row.want)
		}
	}
}

// TestInMemoryDomains checks that a copy for a store in memory has no fallback local.
func TestInMemoryDomains(t *testing.T) {
	c := &Config{Domains: []guard.Domain{{Name: "a", Fallback: guard.FallbackLocal}, {Name: "b", Fallback: guard.FallbackError}}}
	own := c.InMemory()
	if a, b := own.Domains[0].Fallback, own.Domains[1].Fallback; a != guard.FallbackDeny || b != guard.FallbackError {
		t.Errorf("got %v and %v, want deny and error", a, b)
	}
	if c.Domains[0].Fallback != guard.FallbackLocal {
		t.Error("the copy has changed its original")
	}
}
