package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// everything is a value that has all parts of each schema.
type everything struct{}

// below gives a part of a value by its name.
func below(value any, name string) (part any, found bool) {
	switch value := value.(type) {
	case everything:
		return value, true
	case map[string]any:
		part, found = value[name]
	}
	return part, found
}

// operations calls each with all operations of the document and their pointers.
func (d *document) operations(each func(at string, operation map[string]any)) {
	paths := object(d.tree["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := object(paths[path])
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			each(pointer("/paths", path, method), object(methods[method]))
		}
	}
}

// requestParts calls each with the parts of an operation's request that the parameters and the body have.
func (d *document) requestParts(at string, operation map[string]any, parameters, body any, each func(at string)) {
	all, _ := operation["parameters"].([]any)
	for i := range all {
		parameter := object(all[i])
		name, _ := parameter["name"].(string)
		if value, found := below(parameters, strings.ToLower(name)); found {
			here := pointer(at, "parameters", name)
			each(here)
			d.parts(here+"/schema", object(parameter["schema"]), value, each)
		}
	}
	d.mediaParts(pointer(at, "requestBody"), object(operation["requestBody"]), "", body, each)
}

// answerParts calls each with the parts of one response of an operation that the header and the body have. The body
// has a media type; "" is for all types.
func (d *document) answerParts(at string, operation map[string]any, code, media string, header, body any, each func(at string)) {
	at = pointer(at, "responses", code)
	each(at)
	target, response := d.resolve(at, object(object(operation["responses"])[code]))
	headers := object(response["headers"])
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if _, found := below(header, strings.ToLower(name)); found {
			each(pointer(target, "headers", name))
		}
	}
	d.mediaParts(target, response, media, body, each)
}

// mediaParts calls each with the parts of a body.
func (d *document) mediaParts(at string, described map[string]any, media string, body any, each func(at string)) {
	content := object(described["content"])
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if media == "" || media == name {
			here := pointer(at, "content", name)
			each(here)
			d.parts(here+"/schema", object(object(content[name])["schema"]), body, each)
		}
	}
}

// parts calls each with the pointers of the properties, the values and the alternatives of a schema that value has.
func (d *document) parts(at string, schema map[string]any, value any, each func(at string)) {
	at, schema = d.resolve(at, schema)
	properties := object(schema["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if part, found := below(value, name); found {
			here := pointer(at, "properties", name)
			each(here)
			d.parts(here, object(properties[name]), part, each)
		}
	}
	if items := object(schema["items"]); items != nil {
		if list, ok := value.([]any); ok {
			for _, one := range list {
				d.parts(at+"/items", items, one, each)
			}
		} else if value == (everything{}) {
			d.parts(at+"/items", items, value, each)
		}
	}
	values, _ := schema["enum"].([]any)
	for _, one := range values {
		if value == (everything{}) || value == one {
			each(pointer(at, "enum", fmt.Sprint(one)))
		}
	}
	alternatives, _ := schema["oneOf"].([]any)
	for i, one := range alternatives {
		if here := pointer(at, "oneOf", fmt.Sprint(i)); d.fits(object(one), value) {
			each(here)
			d.parts(here, object(one), value, each)
		}
	}
}

// fits reports whether a value is meant by an alternative: it has the type, and the required properties.
func (d *document) fits(schema map[string]any, value any) bool {
	_, schema = d.resolve("", schema)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, found := below(value, fmt.Sprint(name)); !found {
			return false
		}
	}
	_, list := value.([]any)
	return value == (everything{}) || list == (schema["type"] == "array")
}

// resolve follows a reference. It gives the place and the object that are meant.
func (d *document) resolve(at string, node map[string]any) (string, map[string]any) {
	reference, ok := node["$ref"].(string)
	if !ok {
		return at, node
	}
	at = strings.TrimPrefix(reference, "#")
	target, _ := d.at(at)
	return at, target
}

// at gives the object at a pointer of JSON.
func (d *document) at(at string) (node map[string]any, found bool) {
	node = d.tree
	for name := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		if node = object(node[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]); node == nil {
			return nil, false
		}
	}
	return node, true
}

// pointer adds names to a pointer of JSON.
func pointer(at string, names ...string) string {
	for _, name := range names {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return at
}

// object gives a value as an object, and nil for another value.
func object(value any) map[string]any {
	of, _ := value.(map[string]any)
	return of
}
