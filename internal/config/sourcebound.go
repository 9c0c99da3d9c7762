package config

import "github.com/headgate/headgate/internal/config/source"

// The most bytes that a source takes. They are measured, and rounded up.
const (
	// sourceTextFactor is how often the texts of a source are in memory: in force, in a change, held back, and while they are read.
	sourceTextFactor = 4
	// sourceObjectBytes is an object without its text, in force and in a change.
	sourceObjectBytes = 1 << 10
	// sourceHTTPTexts are the texts of a document: source/http.MaxDocument bounds it.
	sourceHTTPTexts = 64 << 20
	// sourceYAMLBytes is the tree of the densest YAML document: source/http.maxSeparators bounds it.
	sourceYAMLBytes = 5 << 28
)

// sourceBound returns the bytes of a source.
func (c *Config) sourceBound() int64 {
	switch {
	case c.Source == nil:
		return 0
	case c.Source.HTTP != nil:
		return source.MaxObjects*sourceObjectBytes + sourceTextFactor*sourceHTTPTexts + sourceYAMLBytes
	default:
		return source.MaxObjects*sourceObjectBytes + sourceTextFactor*source.MaxTotal
	}
}

// sourceText is the part of a source in a line about memory.
func (c *Config) sourceText() string {
	if bound := c.sourceBound(); bound > 0 {
		return ", source " + formatRounded(bound)
	}
	return ""
}
