package xds

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config"
)

// TestDomainsEqualThoseOfFiles: the configurations of Envoy Gateway give the same domains as files with
// the same content.
func TestDomainsEqualThoseOfFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/gateway/*.yaml")
	if err != nil || len(paths) != 26 {
		t.Fatalf("found %d files (%v), want 26", len(paths), err)
	}
	for _, path := range paths {
		messages, resources := documents(t, path)
		var files []config.EnvoyFile
		for _, r := range resources {
			for _, m := range messages {
				if m.GetName() != r.Name {
					continue
				}
				text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				var tree map[string]any
				if err := json.Unmarshal(text, &tree); err != nil {
					t.Fatal(err)
				}
				delete(tree, "name")
				if text, err = json.Marshal(tree); err != nil {
					t.Fatal(err)
				}
				files = append(files, config.EnvoyFile{Name: r.Name, Text: text})
			}
		}
		want, err := config.ParseEnvoy(files, false)
		if err != nil {
			t.Fatalf("%s as files: %v", path, err)
		}
		got, err := Domains(resources, false)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", path, got, err, want)
		}
	}
}

// wide is a tree with some descriptors.
func wide(n int) []Descriptor {
	all := make([]Descriptor, n)
	for i := range all {
		all[i] = Descriptor{Key: "k", Value: strings.Repeat("v", i%7) + string(rune('a'+i%26))}
	}
	return all
}

// TestDomainFaults: each resource is checked as a file is, and its faults have its name.
func TestDomainFaults(t *testing.T) {
	limit := &RateLimit{Unit: "HOUR", RequestsPerUnit: 5}
	deep := Descriptor{Key: "k", RateLimit: limit}
	for range 200 {
		deep = Descriptor{Key: "k", Descriptors: []Descriptor{deep}}
	}
	for _, c := range []struct {
		what      string
		resources []Resource
		want      string
	}{
		{"no domain", []Resource{{Name: "r"}}, `resource "r": domain: `},
		{"an empty key", []Resource{{Name: "r", Domain: "d", Descriptors: []Descriptor{{RateLimit: limit}}}}, `resource "r": descriptors[0].key: `},
		{
			"a limit without a unit",
			[]Resource{{Name: "r", Domain: "d", Descriptors: []Descriptor{{Key: "k", RateLimit: &RateLimit{Unit: "UNKNOWN", RequestsPerUnit: 1}}}}},
			`resource "r": descriptors[0].rate_limit.unit: `,
		},
		{"a domain twice", []Resource{{Name: "a", Domain: "d", Descriptors: wide(1)}, {Name: "b", Domain: "d", Descriptors: wide(1)}}, `resource "b": domain: `},
		{"a key twice", []Resource{{Name: "a", Domain: "d", Descriptors: append(wide(1), wide(1)...)}}, `resource "a": descriptors[1]`},
		{"a deep tree", []Resource{{Name: "a", Domain: "d", Descriptors: []Descriptor{deep}}}, `resource "a": is nested deeper than`},
		{
			"too many descriptors",
			[]Resource{{Name: "a", Domain: "d"}, {Name: "b", Domain: "e", Descriptors: wide(maxDescriptors + 1)}},
			`resource "b": the resources up to this one have more than 100000 descriptors: send fewer`,
		},
		{"a name with a line end", []Resource{{Name: "r\n"}}, `resource "r\n": domain: `},
	} {
		_, err := Domains(c.resources, false)
		if _, faults := errors.AsType[config.Faults](err); !faults || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %.300v, want %s", c.what, err, c.want)
		}
	}
}

// TestMergedDomains: with merge, two resources have one domain.
func TestMergedDomains(t *testing.T) {
	limit := &RateLimit{Unit: "HOUR", RequestsPerUnit: 5, Name: "a limit"}
	domains, err := Domains([]Resource{
		{Name: "a", Domain: "d", Descriptors: []Descriptor{{Key: "k", RateLimit: limit}}},
		{Name: "b", Domain: "d", Descriptors: []Descriptor{{Key: "l", RateLimit: &RateLimit{Unlimited: true, Unit: "UNKNOWN"}}}},
	}, true)
	if err != nil || len(domains) != 1 || len(domains[0].Descriptors) != 2 {
		t.Fatalf("got %+v, %v", domains, err)
	}
	first, second := domains[0].Descriptors[0].Leaf, domains[0].Descriptors[1].Leaf
	if first.Name != "a limit" || first.Policies[0].Algorithm != headgate.FixedWindow || first.Policies[0].Limit.Count != 5 || !second.Unlimited {
		t.Errorf("got %+v and %+v", first, second)
	}
}
