package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/rule"
)

// The readers of single values. Each leaves its target, which holds the default,
// as it is when the field is not there or at fault, and reports whether it set it.

// text reads any single value as it is written.
func (s *section) text(name string, into *string) (value, bool) {
	s.outline.field(name).text(*into, "", 0, 0)
	return s.textOf(name, into)
}

// textOf is text for a field whose outline says more.
func (s *section) textOf(name string, into *string) (value, bool) {
	v, ok := s.scalar(name, "one value")
	if ok {
		*into = v.text()
	}
	return v, ok
}

// scalar gives a value that is neither a list nor a mapping. A variable of the
// environment overrides the file, whose own value is then not looked at.
func (s *section) scalar(name, what string) (value, bool) {
	if s.settable {
		s.outline.field(name).from(variableOf(s.pathOf(name)))
	}
	if v, ok := s.fromEnvironment(name); ok {
		s.ask(name)
		s.found()
		return v, true
	}
	v, ok := s.get(name)
	if !ok {
		return v, false
	}
	if v.node.Kind != yaml.ScalarNode {
		s.fault(v, fmt.Sprintf("must be %s, and is %s", what, kindOf(v.node)), "write "+what)
		return v, false
	}
	return v, true
}

// unquoted refuses quotes: 5 is a number, and "5" is text. Variables have none.
func (r *reader) unquoted(v value, what string) bool {
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if v.node.Style&quotes != 0 {
		r.fault(v, fmt.Sprintf("must be %s, and is text in quotes", what), "write it without quotes")
		return false
	}
	return true
}

func (s *section) boolean(name string, into *bool) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).boolean(*into)
	v, ok := s.scalar(name, "true or false")
	if !ok || !s.unquoted(v, "true or false") {
		return
	}
	switch v.text() {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		s.fault(v, "must be true or false, and is "+quote(v.text()), "write true or false")
	}
}

// number reads a whole number from least to most.
func (s *section) number(name string, into *int64, least, most int64) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).number(*into, least, most)
	if v, ok := s.scalar(name, "a whole number"); ok {
		s.wholeNumber(v, into, least, most)
	}
}

func (r *reader) wholeNumber(v value, into *int64, least, most int64) bool {
	if !r.unquoted(v, "a whole number") {
		return false
	}
	n, err := strconv.ParseInt(v.text(), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (n < least || n > most):
		fix := fmt.Sprintf("use %d to %d", least, most)
		if least == most {
			fix = fmt.Sprintf("use %d", least)
		}
		r.fault(v, quote(v.text())+" is out of range", fix)
	case err != nil || v.text() != strconv.FormatInt(n, 10):
		r.fault(v, "must be a whole number, and is "+kindOf(v.node), "write digits only, like 20")
	default:
		*into = n
		return true
	}
	return false
}

// duration reads a length of time from least to most.
func (s *section) duration(name string, into *time.Duration, least, most time.Duration) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).duration(*into, least, most)
	v, ok := s.scalar(name, "a duration")
	if !ok {
		return
	}
	d, err := rule.ParseDuration(v.text())
	switch {
	case err != nil:
		s.parseFault(v, err)
	case d < least || d > most:
		s.fault(v, quote(v.text())+" is out of range", fmt.Sprintf("use %s to %s", field.FormatDuration(least), field.FormatDuration(most)))
	default:
		*into = d
	}
}

// parseFault notes the error of one of rule's parsers, at the place within v that
// it tells of.
func (r *reader) parseFault(v value, err error) {
	bad, found := errors.AsType[*rule.ParseError](err)
	if !found {
		r.fault(v, err.Error(), "compare it with docs/configuration.md")
		return
	}
	r.faultAt(v, bad.Offset, bad.Problem, bad.Fix)
}
