package config

import (
	"fmt"
	"maps"
	"slices"
)

// object returns the JSON Schema of an outline. path is for descriptions and errors.
func (o *outline) object(path string) (map[string]any, error) {
	var schema map[string]any
	if o.mapping {
		return o.mappingObject(path)
	}
	forms, err := o.allForms(path)
	switch {
	case err != nil:
		return nil, err
	case len(forms) == 1:
		schema = maps.Clone(forms[0])
	default:
		schema = map[string]any{"anyOf": forms}
	}
	if o.entry != nil {
		entry, err := o.entry.object(path + "[]")
		if err != nil {
			return nil, err
		}
		schema["items"] = entry
	}
	if o.preset != nil {
		schema["default"] = o.preset
	}
	return schema, nil
}

// allForms returns all forms of a value, including a mapping.
func (o *outline) allForms(path string) ([]map[string]any, error) {
	if len(o.forms) == 0 {
		return nil, fmt.Errorf("config: no reader declares the form of %s: "+
			"declare it in its outline, and extend the sample in schema.go", path)
	}
	if o.either == nil {
		return o.forms, nil
	}
	mapping, err := o.either.object(path)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(o.forms), mapping), nil
}

func (o *outline) mappingObject(path string) (map[string]any, error) {
	if !o.ended {
		return nil, fmt.Errorf("config: no reader has read all fields of %s: extend the sample in schema.go", path)
	}
	schema := map[string]any{"type": "object", "additionalProperties": false}
	if o.anyField != nil {
		inner, err := o.anyField.object(join(path, "*"))
		if err != nil {
			return nil, err
		}
		schema["additionalProperties"], schema["maxProperties"] = inner, o.most
		return schema, nil
	}
	properties := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		field := o.fields[name]
		if field.refused {
			continue
		}
		inner, err := field.object(join(path, name))
		if err != nil {
			return nil, err
		}
		if text := field.description(); text != "" {
			inner["description"] = text
		}
		properties[name] = inner
	}
	schema["properties"] = properties
	if len(o.needed) > 0 {
		schema["required"] = o.needed
	}
	if clauses := o.clauseObjects(); len(clauses) > 0 {
		schema["allOf"] = clauses
	}
	return schema, nil
}

// clauseObjects returns the clauses as if and then. A missing field counts as its default.
func (o *outline) clauseObjects() []any {
	var all []any
	for _, c := range o.clauses {
		other := o.fields[c.field]
		if other == nil && c.unless == nil {
			continue // The field belongs to the mapping around this one.
		}
		needed := map[string]any{"required": []string{c.needed}}
		switch {
		case c.unless != nil:
			var has []any
			for _, name := range c.unless {
				has = append(has, map[string]any{"required": []string{name}})
			}
			lacks := map[string]any{"not": map[string]any{"anyOf": has}}
			all = append(all, map[string]any{"if": lacks, "then": needed})
		case c.restricted == "":
			is := map[string]any{"properties": map[string]any{c.field: map[string]any{"const": c.word}}, "required": []string{c.field}}
			all = append(all, map[string]any{"if": is, "then": needed})
		default:
			then := map[string]any{"properties": map[string]any{c.field: map[string]any{"enum": c.words}}}
			if preset, _ := other.preset.(string); !slices.Contains(c.words, preset) {
				then["required"] = []string{c.field}
			}
			all = append(all, map[string]any{"if": map[string]any{"required": []string{c.restricted}}, "then": then})
		}
	}
	return all
}

// description returns the text of a field, and the variable that overrides it.
func (o *outline) description() string {
	text := o.declared.Text
	if o.variable != "" && text != "" {
		text += " Variable: " + o.variable + "."
	}
	return text
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
