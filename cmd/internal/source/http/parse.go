package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/internal/config/source"
)

const documentFix = "write a mapping with rules, plans and customers, each a mapping of names to objects"

// Parse reads the objects of a document: a mapping with rules, plans and customers. Each of them is a mapping of names to
// objects; rules may also be a list, as in the file. The objects are not checked. An error means that the document as a
// whole cannot be read.
func Parse(text []byte) ([]source.Object, error) {
	c, err := parse(text)
	if err != nil {
		return nil, err
	}
	return c.objects, nil
}

func parse(text []byte) (*collection, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if c, err := parseJSON(text); err == nil || json.Valid(text) {
			return c, err
		}
	}
	return parseYAML(text)
}

// collection gathers the objects of a document.
type collection struct {
	objects []source.Object
	known   map[source.Key]bool
	// given has the kinds whose section is there and is not null.
	given map[source.Kind]bool
}

func newCollection() *collection {
	return &collection{known: map[source.Key]bool{}, given: map[source.Kind]bool{}}
}

// count gives the number of objects of a kind.
func (c *collection) count(kind source.Kind) (n int) {
	for i := range c.objects {
		if c.objects[i].Kind == kind {
			n++
		}
	}
	return n
}

func (c *collection) add(kind source.Kind, name, text string) error {
	key := source.Key{Kind: kind, Name: name}
	switch {
	case c.known[key]:
		return fmt.Errorf("%s is in the document twice: remove one of them", key)
	case len(c.objects) == source.MaxObjects:
		return fmt.Errorf("the document has more than %d objects: remove some", source.MaxObjects)
	}
	c.known[key] = true
	c.objects = append(c.objects, source.Object{Key: key, Text: text})
	return nil
}

// kindOf gives the kind of a section; false for version, which has no objects.
func kindOf(section string) (source.Kind, bool, error) {
	for _, kind := range source.Kinds() {
		if kind.Section() == section {
			return kind, true, nil
		}
	}
	if section == "version" {
		return 0, false, nil
	}
	if len(section) > 48 {
		section = section[:48] + "..."
	}
	return 0, false, fmt.Errorf("the document has the field %q, and a source has only rules, plans and customers: %s", section, documentFix)
}

func parseJSON(text []byte) (*collection, error) {
	c := newCollection()
	d := json.NewDecoder(bytes.NewReader(text))
	sections := map[string]bool{}
	err := members(d, func(section string) error {
		if sections[section] {
			return fmt.Errorf("the document has %q twice: write it once", section)
		}
		sections[section] = true
		kind, objects, err := kindOf(section)
		if err != nil {
			return err
		}
		var one json.RawMessage
		if !objects {
			return d.Decode(&one)
		}
		if nextIs(d, text, 'n') {
			return d.Decode(&one) // null is a section without objects, as in YAML.
		}
		c.given[kind] = true
		if listed := nextIs(d, text, '['); listed && kind == source.Rule {
			return c.list(d)
		}
		return members(d, func(name string) error {
			if err := d.Decode(&one); err != nil {
				return err
			}
			return c.add(kind, name, string(one))
		})
	})
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the document: send one document")
	}
	return c.complete(sections)
}

// nextIs reports whether the next value begins with a character.
func nextIs(d *json.Decoder, text []byte, c byte) bool {
	rest := bytes.TrimLeft(text[d.InputOffset():], " \t\r\n:")
	return len(rest) > 0 && rest[0] == c
}

// list reads rules as the file has them.
func (c *collection) list(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return err
		}
		var named struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(one, &named); err != nil || named.Name == "" {
			return errors.New("a rule of the list has no name: give each one")
		}
		if err := c.add(source.Rule, named.Name, string(one)); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// members calls f with each name of an object. f reads its value.
func members(d *json.Decoder, f func(name string) error) error {
	if begin, err := d.Token(); err != nil {
		return err
	} else if begin != json.Delim('{') {
		return errors.New("a mapping is missing: " + documentFix)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string) // The decoder gives only texts here.
		if err := f(text); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// complete refuses a document without a section: it would delete every object.
func (c *collection) complete(sections map[string]bool) (*collection, error) {
	for _, kind := range source.Kinds() {
		if sections[kind.Section()] {
			return c, nil
		}
	}
	return nil, errors.New("the document has none of rules, plans and customers: write customers: {} for a source without objects")
}
