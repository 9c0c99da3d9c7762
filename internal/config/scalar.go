package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// The following methods read single values. Before the call, the target holds the default. A
// method sets the target only if the field is present and valid, and then reports true.

// text reads any single value as written.
func (s *section) text(name string, into *string) (value, bool) {
	s.outline.field(name).text(*into, "", 0, 0)
	return s.textOf(name, into)
}

// textOf reads a text. The caller describes the field in the outline.
func (s *section) textOf(name string, into *string) (value, bool) {
	v, ok := s.scalar(name, "one value")
	if ok {
		*into = v.text()
	}
	return v, ok
}

// scalar returns a value that is neither a list nor a mapping. If an environment variable
// sets the field, scalar ignores the value in the file.
func (s *section) scalar(name, what string) (value, bool) {
	if s.settable {
		s.outline.field(name).from(variableOf(s.pathOf(name)))
	}
	if v, ok := s.fromEnvironment(name); ok {
		s.record(name)
		s.found()
		return v, true
	}
	v, ok := s.get(name)
	if !ok {
		return v, false
	}
	if v.node.Kind != yaml.ScalarNode {
		s.fault(v, fmt.Sprintf("must be %s, not %s", what, kindOf(v.node)), "write "+what)
		return v, false
	}
	return v, true
}

// unquoted rejects quotes around a number, because "5" is a text. Variables have no quotes.
func (r *reader) unquoted(v value, what string) bool {
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if v.node.Style&quotes != 0 {
		r.fault(v, fmt.Sprintf("must be %s, not text in quotes", what), "write it without quotes")
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
		s.fault(v, "must be true or false, not "+quote(v.text()), "write true or false")
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
		r.fault(v, "must be a whole number, not "+kindOf(v.node), "write digits only, like 20")
	default:
		*into = n
		return true
	}
	return false
}

// duration reads a duration from least to most.
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

// parseFault notes the error of a parser of package rule, at the offset that the error names.
func (r *reader) parseFault(v value, err error) {
	bad, found := errortype.As[*rule.ParseError](err)
	if !found {
		r.fault(v, err.Error(), "compare it with docs/configuration.md")
		return
	}
	r.faultAt(v, bad.Offset, bad.Problem, bad.Fix)
}
