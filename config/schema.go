package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/headgate/headgate/guard"
)

// Schema gives a JSON Schema (draft 2020-12) of the configuration, for editors and
// for those who write configurations by program. The readers themselves say what it
// has: which fields there are, of what type, within what bounds.
//
// A schema cannot say all that Load checks: what fields mean together, and what a
// text says beyond its form. What Load accepts, the schema accepts, unless YAML
// itself was used in a way that JSON has no word for, as with aliases, which have
// to be resolved first.
func Schema() ([]byte, error) {
	all, err := readOutline()
	if err != nil {
		return nil, err
	}
	schema, err := all.object("")
	if err != nil {
		return nil, err
	}
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Configuration of Headgate"
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // It is for people too, and & stands in patterns.
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("config: the schema cannot be written: %w", err)
	}
	return text.Bytes(), nil
}

// readOutline gathers what the readers declare.
func readOutline() (*outline, error) {
	src, bad := newSource("sample", []byte(schemaSample()))
	if bad != nil {
		return nil, Faults{*bad}
	}
	root, bad := src.tree()
	if bad != nil {
		return nil, Faults{*bad}
	}
	all := &outline{}
	r := &reader{source: src, environment: func(string) (string, bool) { return "", false }, root: root, outline: all}
	r.config(defaults())
	return all, nil
}

// schemaSample is a file that makes the readers ask for every field there is:
// optional parts, and each action, since they ask for different ones. Its faults do
// not matter. What it forgets, outline.object finds.
func schemaSample() string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for _, action := range guard.Actions() {
		fmt.Fprintf(&b, "- {ban: {}, overrides: {a: {}}, on_exceed: {action: %s}}\n", action)
	}
	return b.String()
}
