package xds

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
)

// written is a resource as its file has it. The file has fields beyond those of the protocol, and
// their values are all false.
type written struct {
	Name        string              `yaml:"name"`
	Domain      string              `yaml:"domain"`
	Descriptors []writtenDescriptor `yaml:"descriptors"`
}

type writtenDescriptor struct {
	Key         string              `yaml:"key"`
	Value       string              `yaml:"value"`
	RateLimit   *writtenLimit       `yaml:"rate_limit"`
	Descriptors []writtenDescriptor `yaml:"descriptors"`
	Shadow      bool                `yaml:"shadow_mode"`
	Detailed    bool                `yaml:"detailed_metric"`
	Quota       bool                `yaml:"quota_mode"`
}

type writtenLimit struct {
	Unit      string `yaml:"unit"`
	Requests  uint32 `yaml:"requests_per_unit"`
	Unlimited bool   `yaml:"unlimited"`
	Name      string `yaml:"name"`
	Replaces  []struct {
		Name string `yaml:"name"`
	} `yaml:"replaces"`
}

func (w written) resource() Resource {
	return Resource{Name: w.Name, Domain: w.Domain, Descriptors: plain(w.Descriptors)}
}

func plain(all []writtenDescriptor) []Descriptor {
	var converted []Descriptor
	for _, w := range all {
		d := Descriptor{
			Key: w.Key, Value: w.Value, Descriptors: plain(w.Descriptors),
			ShadowMode: w.Shadow, DetailedMetric: w.Detailed, QuotaMode: w.Quota,
		}
		if l := w.RateLimit; l != nil {
			d.RateLimit = &RateLimit{Unit: l.Unit, RequestsPerUnit: l.Requests, Unlimited: l.Unlimited, Name: l.Name}
			for _, r := range l.Replaces {
				d.RateLimit.Replaces = append(d.RateLimit.Replaces, r.Name)
			}
		}
		converted = append(converted, d)
	}
	return converted
}

// documents reads a file into the messages for the server and the resources to expect. The messages
// are made from the file's JSON form, so they share no code with the package's conversion.
func documents(t *testing.T, path string) (messages []*ratelimitv3.RateLimitConfig, want []Resource) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	typed, loose := yaml.NewDecoder(bytes.NewReader(text)), yaml.NewDecoder(bytes.NewReader(text))
	for {
		var w written
		var tree map[string]any
		if err := typed.Decode(&w); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := loose.Decode(&tree); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		encoded, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		message := &ratelimitv3.RateLimitConfig{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, message); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		messages, want = append(messages, message), append(want, w.resource())
	}
	slices.SortFunc(want, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return messages, want
}

// TestGatewayConfigurations sends the configurations that Envoy Gateway makes in its own tests
// through a real server. Each resource must arrive equal.
func TestGatewayConfigurations(t *testing.T) {
	files, err := filepath.Glob("testdata/gateway/*.yaml")
	if err != nil || len(files) != 26 {
		t.Fatalf("found %d files (%v), want 26", len(files), err)
	}
	l := loopback(t, "127.0.0.1:0")
	c := start(t, l)
	s, err := New(Config{Server: l.Addr().String(), NodeID: node})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, nil)
	for n, file := range files {
		messages, want := documents(t, file)
		if len(want) == 0 {
			t.Fatalf("%s has no resource", file)
		}
		c.publish(t, file, messages...)
		acknowledged := func() bool {
			requests, _ := c.received()
			return len(requests) > 0 && requests[len(requests)-1].GetVersionInfo() == file
		}
		await(t, file+" acknowledged", acknowledged)
		i.mu.Lock()
		got := i.force
		i.mu.Unlock()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s arrived as\n%+v\nwant\n%+v", file, got, want)
		}
		if _, faults, _ := i.known(); len(faults) > 0 {
			t.Fatalf("file %d, %s: faults %v", n, file, faults)
		}
	}
}
