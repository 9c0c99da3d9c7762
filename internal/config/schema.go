package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// Schema returns a JSON Schema (draft 2020-12) of the configuration, for editors and for
// programs that write configurations. The readers themselves declare its fields, types and bounds.
//
// The schema accepts each file that Load accepts, unless the file uses YAML features that JSON
// lacks, such as aliases. Resolve aliases first. The schema does not check everything that Load
// checks, such as conditions between fields.
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
	encoder.SetEscapeHTML(false) // People read the schema too, and patterns contain &.
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("config: the schema cannot be written: %w", err)
	}
	return text.Bytes(), nil
}

// readOutline runs the readers on schemaSample and returns what they declare.
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

// Declarations returns the declared fields by their paths. In a path, [] stands for each entry of a list, and * for any name. A
// section is left out, unless its fields have any names and values.
func Declarations() (map[string]field.Field, error) {
	all, err := readOutline()
	if err != nil {
		return nil, err
	}
	fields := map[string]field.Field{}
	eachOutline(all, "", func(path string, o *outline) {
		names := o.anyField != nil && !o.anyField.mapping && o.anyField.entry == nil
		if !o.refused && o.declared.Name != "" && (!o.mapping || names) {
			fields[path] = o.declared
		}
	})
	return fields, nil
}

// eachOutline yields every declared field with its path.
func eachOutline(o *outline, path string, yield func(path string, o *outline)) {
	for name, field := range o.fields {
		yield(join(path, name), field)
		eachOutline(field, join(path, name), yield)
	}
	if o.entry != nil {
		eachOutline(o.entry, path+"[]", yield)
	}
	if o.anyField != nil {
		eachOutline(o.anyField, join(path, "*"), yield)
	}
	if o.either != nil {
		eachOutline(o.either, path, yield)
	}
}

// schemaSample returns a file with which the readers look up every field: all optional sections,
// and each action, because actions have different fields. Its faults do not
// matter. outline.object fails if the sample lacks a section.
func schemaSample() string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for _, action := range guard.Actions() {
		fmt.Fprintf(&b, "- {ban: {}, count: {}, overrides: {a: {}}, limits_from: {}, settle: {}, on_exceed: {action: %s}}\n", action)
	}
	b.WriteString("prices: {a: {}}\n")
	b.WriteString("plans: {a: {quotas: {}}}\n")
	b.WriteString("customers: {a: {}}\n")
	b.WriteString("source: {etcd: {tls: {}}, http: {tls: {}}, postgres: {tls: {}}}\n")
	b.WriteString("throttle: {classes: [{}]}\n")
	b.WriteString("server: {callers: [{}], statsd: [{rewrites: [{}]}]}\n")
	b.WriteString("lease: {tls: {}, resources: [{bands: [{}]}], holders: {a: {}}}\n")
	b.WriteString("domains: {a: {descriptors: [{}]}}\n")
	return b.String()
}
