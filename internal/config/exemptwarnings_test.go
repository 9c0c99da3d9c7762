package config

import (
	"slices"
	"testing"
)

func TestExemptWarnings(t *testing.T) {
	c, err := Parse("f", []byte(`version: 1
exempt: [{path: /healthz}, {path: /probes/*, methods: [GET]}]
rules:
  - {name: health, match: {path: /healthz}, key: [ip], limits: [1/s]}
  - {name: ready, match: {path: /probes/ready, methods: [HEAD]}, key: [ip], limits: [1/s]}
  - {name: probes, match: {path: /probes/*}, key: [ip], limits: [2/s]}
  - {name: "off", match: {path: /healthz}, mode: off, key: [ip], limits: [3/s]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`rule "health": never decides anything: exempt[0] leaves out every request of the match: narrow exempt, or remove the rule`,
		`rule "ready": never decides anything: exempt[1] leaves out every request of the match: narrow exempt, or remove the rule`,
	}
	if got := c.ExemptWarnings(); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
