package config

import (
	"reflect"
	"slices"

	"github.com/headgate/headgate/internal/config/field"
)

// outline collects what the readers accept at one place of a file. Each reader declares types,
// bounds and words just before it checks them, so the schema cannot differ from the code.
//
// Only Schema runs the readers with an outline. At all other times the outline is nil, and
// its methods do nothing.
type outline struct {
	// forms are the possible forms of the value. There are several if the form depends on
	// another field.
	forms []map[string]any
	// preset is the default. It is nil if there is none. If it depends on other fields,
	// mixed is set.
	preset   any
	mixed    bool
	variable string
	declared field.Field

	// A mapping has fields, or fields of any name, which anyField describes.
	fields   map[string]*outline
	anyField *outline
	mapping  bool
	ended    bool
	most     int // The most fields of any name.
	needed   []string
	// clauses are conditions that depend on another field of the mapping.
	clauses []clause
	// within has the field and the word that the next declarations depend on.
	within [2]string

	entry *outline // The outline of a list's entries.
	// either is the mapping that may replace a single value.
	either *outline
	// refused marks a field that is known, and always a fault.
	refused bool
}

// clause is a condition between two fields of one mapping. If field has the word, the field
// needed is required. With unless, the field needed is required if all fields of unless are
// missing. With restricted set, the field restricted is valid only if field has one of words.
type clause struct {
	field, word, needed string
	unless              []string
	restricted          string
	words               []string
}

// field returns the outline of a field of a mapping.
func (o *outline) field(name string) *outline {
	if o == nil {
		return nil
	}
	o.mapping = true
	if o.fields[name] == nil {
		if o.fields == nil {
			o.fields = map[string]*outline{}
		}
		o.fields[name] = &outline{}
	}
	return o.fields[name]
}

// each returns the outline of fields of any name. The bound of their number is most.
func (o *outline) each(most int) *outline {
	if o == nil {
		return nil
	}
	if o.anyField == nil {
		o.anyField = &outline{}
	}
	o.mapping, o.ended, o.most = true, true, most
	return o.anyField
}

// entries returns the outline of the entries of a list.
func (o *outline) entries() *outline {
	if o == nil {
		return nil
	}
	if o.entry == nil {
		o.entry = &outline{}
	}
	return o.entry
}

// or returns the outline of a mapping that may replace a single value.
func (o *outline) or() *outline {
	if o == nil {
		return nil
	}
	if o.either == nil {
		o.either = &outline{}
	}
	return o.either
}

// declare records the declaration of the field.
func (o *outline) declare(f field.Field) {
	if o != nil {
		o.declared = f
	}
}

// refuse marks a field that is always a fault, which the schema leaves out.
func (o *outline) refuse() {
	if o != nil {
		o.refused = true
	}
}

// end records that the mapping has no further fields.
func (o *outline) end() {
	if o != nil {
		o.mapping, o.ended = true, true
	}
}

// from records the variable that overrides the field.
func (o *outline) from(variable string) {
	if o != nil {
		o.variable = variable
	}
}

// under makes the next declarations depend on the word in a field, until under("", "").
func (o *outline) under(field, word string) {
	if o != nil {
		o.within = [2]string{field, word}
	}
}

// needs records that a field is required.
func (o *outline) needs(name string) {
	switch {
	case o == nil:
	case o.within[0] != "":
		o.addClause(clause{field: o.within[0], word: o.within[1], needed: name})
	case !slices.Contains(o.needed, name):
		o.needed = append(o.needed, name)
	}
}

// needsUnless records that a field is required if all of the others are missing.
func (o *outline) needsUnless(name string, others []string) {
	if o != nil {
		o.addClause(clause{unless: others, needed: name})
	}
}

// restrict records that the field restricted is valid only with some words in another field.
func (o *outline) restrict(restricted, field string, words ...string) {
	if o != nil {
		o.addClause(clause{restricted: restricted, field: field, words: words})
	}
}

func (o *outline) addClause(c clause) {
	if !slices.ContainsFunc(o.clauses, func(has clause) bool { return reflect.DeepEqual(has, c) }) {
		o.clauses = append(o.clauses, c)
	}
}

// form adds a form of the value. preset is its default, or nil.
func (o *outline) form(preset any, form map[string]any) {
	switch {
	case preset == nil || o.mixed || reflect.DeepEqual(o.preset, preset):
	case o.preset == nil:
		o.preset = preset
	default:
		o.dependent()
	}
	if !slices.ContainsFunc(o.forms, func(has map[string]any) bool { return reflect.DeepEqual(has, form) }) {
		o.forms = append(o.forms, form)
	}
}

// dependent removes the default, because another field sets it.
func (o *outline) dependent() {
	if o != nil {
		o.preset, o.mixed = nil, true
	}
}
