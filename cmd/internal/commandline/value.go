package commandline

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// readable reports whether decode knows the type of the target.
func (v *Value) readable() bool {
	kind := v.target.Type()
	if kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	switch kind.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	default:
		return false
	}
}

// parse reads a value of the command line, a variable or a default into the target.
func (v *Value) parse(s *scanner, target reflect.Value) error {
	if err := v.decode(s, target); err != nil {
		return fmt.Errorf("%s: %w", v.short(), err)
	}
	v.Set = true
	return nil
}

func (v *Value) decode(s *scanner, target reflect.Value) error {
	switch target.Kind() {
	case reflect.Slice:
		return v.decodeList(s, target)
	case reflect.Bool:
		return decodeBool(s, target)
	case reflect.Pointer:
		element := reflect.New(target.Type().Elem())
		if err := v.decode(s, element.Elem()); err != nil {
			return err
		}
		target.Set(element)
		return nil
	default:
		return decodeOne(s, target)
	}
}

func decodeOne(s *scanner, target reflect.Value) error {
	duration := target.Type() == reflect.TypeFor[time.Duration]()
	kind := target.Kind().String()
	switch {
	case duration:
		kind = "duration"
	case target.CanInt():
		kind = "int"
	}
	t, err := s.popValue(kind)
	switch {
	case err != nil:
		return err
	case duration:
		d, err := time.ParseDuration(t.text)
		if err != nil {
			return fmt.Errorf("expected duration but got %q: %w", t.text, err)
		}
		target.SetInt(int64(d))
	case target.CanInt():
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil || target.OverflowInt(n) {
			return fmt.Errorf("expected a valid %d bit int but got %q", target.Type().Bits(), t.text)
		}
		target.SetInt(n)
	default:
		target.SetString(t.text)
	}
	return nil
}

func decodeBool(s *scanner, target reflect.Value) error {
	on := true
	if s.peek().kind == flagValue {
		text := s.pop().text
		switch strings.ToLower(text) {
		case "true", "1", "yes":
		case "false", "0", "no":
			on = false
		default:
			return fmt.Errorf("bool value must be true, 1, yes, false, 0 or no but got %q", strings.ToLower(text))
		}
	}
	target.SetBool(on)
	return nil
}

// decodeList adds elements: for a flag those of the next word, for an argument all words to the next flag.
func (v *Value) decodeList(s *scanner, target reflect.Value) error {
	elements := &scanner{}
	if v.flag {
		t := s.pop()
		if t.kind == endOfLine {
			more := ""
			if v.separator != "" {
				more = v.separator + "..."
			}
			return fmt.Errorf("missing value, expecting \"<arg>%s\"", more)
		}
		for _, text := range split(t.text, v.separator) {
			elements.tokens = append(elements.tokens, token{text, t.kind})
		}
	} else {
		for s.peek().isValue() {
			elements.tokens = append(elements.tokens, s.pop())
		}
	}
	for elements.peek().kind != endOfLine {
		element := reflect.New(target.Type().Elem()).Elem()
		if err := v.decode(elements, element); err != nil {
			return err
		}
		target.Set(reflect.Append(target, element))
	}
	return nil
}

// split splits a text at separators that have no backslash before them. It leaves out an empty last element.
func split(text, separator string) []string {
	if separator == "" {
		return []string{text}
	}
	var parts []string
	var part strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != separator[0] {
				part.WriteByte(c)
			}
			part.WriteByte(text[i])
		case c == separator[0]:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	if part.Len() > 0 {
		parts = append(parts, part.String())
	}
	return parts
}

// checkEnum refuses a value that its enum does not list.
func (v *Value) checkEnum() error {
	if len(v.Enum) == 0 {
		return nil
	}
	var quoted []string
	for _, word := range v.Enum {
		if word == v.Text() {
			return nil
		}
		quoted = append(quoted, strconv.Quote(word))
	}
	return fmt.Errorf("%s must be one of %s but got %q", v.short(), strings.Join(quoted, ","), v.Text())
}
