package ctl

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/readfile"
)

// FieldsText makes the text of a change from FIELD=VALUE arguments. A name with dots is a field of a field, such as
// hard.api_calls=300. A name with other characters is in brackets and quotes, such as overrides["192.0.2.1"].limits. A
// value is in YAML. An empty value removes the field.
func FieldsText(args []string) (string, error) {
	root := newMapping()
	for _, arg := range args {
		path, value, err := cutPath(arg)
		var node *yaml.Node
		if err == nil {
			node, err = parseValue(value)
		}
		if err == nil {
			err = setField(root, path, node)
		}
		if err != nil {
			return "", fmt.Errorf("%q: %w", arg, err)
		}
	}
	text, err := yaml.Dump(root)
	return string(text), err
}

// PlanText makes the text of a change to another plan. The name is a text, also if it looks like a number.
func PlanText(name string) (string, error) {
	root := newMapping()
	root.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Value: "plan"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: name}}
	text, err := yaml.Dump(root)
	return string(text), err
}

func newMapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// parseValue parses one value. Each is parsed alone, so that a comma in a note ends no field.
func parseValue(text string) (*yaml.Node, error) {
	if strings.TrimSpace(text) == "" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	var document yaml.Node
	if err := yaml.Load([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("the value is no YAML: %w: write it in quotes, or use --file", err)
	}
	if len(document.Content) != 1 {
		return nil, errors.New("the value is not one value in YAML: write it in quotes")
	}
	return document.Content[0], nil
}

// setField sets a field of a field. path has at least one name.
func setField(in *yaml.Node, path []string, value *yaml.Node) error {
	const twice = "the field is written twice: write it once"
	for at, name := range path {
		last := at == len(path)-1
		var known *yaml.Node
		for i := 0; i+1 < len(in.Content); i += 2 {
			if in.Content[i].Value == name {
				known = in.Content[i+1]
			}
		}
		if known != nil && (last || known.Kind != yaml.MappingNode) {
			return errors.New(twice)
		}
		if known == nil {
			known = value
			if !last {
				known = newMapping()
			}
			in.Content = append(in.Content, nameNode(name), known)
		}
		in = known
	}
	return nil
}

// nameNode gives the name of a field, which is a text also if it looks like a number.
func nameNode(name string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
}

// ReadText reads the text of an object from a file, or from standard input for "-".
func ReadText(name string, stdin io.Reader) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, source.MaxText+1))
		if err == nil && len(text) > source.MaxText {
			err = fmt.Errorf("standard input has more than %d bytes: an object is shorter", source.MaxText)
		}
		return string(text), err
	}
	text, err := readfile.Head(name, source.MaxText+1)
	switch {
	case err != nil:
		return "", fmt.Errorf("--file: %w: write the name of a file, or - for standard input", err)
	case len(text) > source.MaxText:
		return "", fmt.Errorf("--file: %s has more than %d bytes: an object is shorter", name, source.MaxText)
	}
	return string(text), nil
}
