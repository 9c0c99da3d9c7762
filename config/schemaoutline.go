package config

import (
	"reflect"
	"slices"

	"github.com/headgate/headgate/config/field"
)

// outline gathers what may stand at one place of a file. Each reader tells it what
// it is about to check, on a reading that is made for that alone (Schema): so there
// is no second list of types, bounds and words that could differ from the code.
//
// All other readings have a nil outline, which gathers nothing and costs nothing.
type outline struct {
	// forms are the ways to write the value: one, or several where the reader asks
	// for another one beside another field.
	forms []map[string]any
	// preset is what counts when the field is left out; nil is nothing, or what
	// depends on other fields, and then mixed is set.
	preset   any
	mixed    bool
	variable string
	declared field.Field

	// fields, or anyField for those of any name, are what a mapping may have.
	fields   map[string]*outline
	anyField *outline
	mapping  bool
	ended    bool
	most     int // of the fields of any name
	needed   []string
	// clauses are needs and bounds that depend on another field of the mapping.
	clauses []clause
	// within is the field and the word that what is told next depends on.
	within [2]string

	entry *outline // of a list
	// either is a mapping that may stand in place of a value of the forms.
	either *outline
	// planned tells of a field that is known and not built.
	planned bool
}

// clause is what holds between two fields of one mapping: with word in field, or, with
// unless, without field, the field needed must be there; or where owned is there, field
// has one of words.
type clause struct {
	field, word, needed string
	unless              bool
	owned               string
	words               []string
}

// field gives the outline of a field of a mapping.
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

// each gives the outline of fields of any name, of which there are at most most.
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

// entries gives the outline of the entries of a list.
func (o *outline) entries() *outline {
	if o == nil {
		return nil
	}
	if o.entry == nil {
		o.entry = &outline{}
	}
	return o.entry
}

// or gives the outline of a mapping that may stand in place of a single value.
func (o *outline) or() *outline {
	if o == nil {
		return nil
	}
	if o.either == nil {
		o.either = &outline{}
	}
	return o.either
}

// declare takes what a field means, and how a reload takes it.
func (o *outline) declare(f field.Field) {
	if o != nil {
		o.declared = f
	}
}

// later marks a field that is planned: it is no part of a schema.
func (o *outline) later() {
	if o != nil {
		o.planned = true
	}
}

// end tells that all fields of a mapping were asked for.
func (o *outline) end() {
	if o != nil {
		o.mapping, o.ended = true, true
	}
}

// from tells which variable overrides the field.
func (o *outline) from(variable string) {
	if o != nil {
		o.variable = variable
	}
}

// under makes what is told next depend on the word in a field; "" ends that.
func (o *outline) under(field, word string) {
	if o != nil {
		o.within = [2]string{field, word}
	}
}

// needs tells that a field must be there.
func (o *outline) needs(name string) {
	switch {
	case o == nil:
	case o.within[0] != "":
		o.hold(clause{field: o.within[0], word: o.within[1], needed: name})
	case !slices.Contains(o.needed, name):
		o.needed = append(o.needed, name)
	}
}

// needsUnless tells that a field must be there when another one is missing.
func (o *outline) needsUnless(name, other string) {
	if o != nil {
		o.hold(clause{field: other, unless: true, needed: name})
	}
}

// owns tells that a field is used with some words in another one alone.
func (o *outline) owns(owned, field string, words ...string) {
	if o != nil {
		o.hold(clause{owned: owned, field: field, words: words})
	}
}

func (o *outline) hold(c clause) {
	if !slices.ContainsFunc(o.clauses, func(has clause) bool { return reflect.DeepEqual(has, c) }) {
		o.clauses = append(o.clauses, c)
	}
}

// form adds a way to write the value. preset is its default, or nil.
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

// dependent takes the default away: it is what another field says.
func (o *outline) dependent() {
	if o != nil {
		o.preset, o.mixed = nil, true
	}
}
