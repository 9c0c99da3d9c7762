package rule

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// NamedValue is a value of a key's first part.
type NamedValue struct {
	// Override is the entry of a list of overrides for this value alone.
	Override Override
	// Request has the value.
	Request *headgate.Request
}

// NameOverride finds the Override of one value of a key's first part, which applies to all keys with the value. text is written as for
// NameKey. The error is a *KeyError.
func (f Folds) NameOverride(r *Rule, text string) (*NamedValue, error) {
	if len(r.Key) == 0 || r.Key[0].kind == partAll || r.Key[0].kind == partNone {
		return nil, &KeyError{0, "of rule " + r.Name + " has no value: all requests share one key", "change the limits of the rule"}
	}
	first := Rule{Name: r.Name, Key: r.Key[:1]}
	named, err := f.NameKey(&first, []string{text})
	if err != nil {
		return nil, err
	}
	p := r.Key[0]
	if p.isAddress() {
		if client := p.subscriber(p.address(named.Request)); client.IsValid() {
			return &NamedValue{Override{Value: client.String()}, named.Request}, nil
		}
	} else if o, found := f.overrideOf(p, named.Request); found {
		return &NamedValue{o, named.Request}, nil
	}
	return nil, &KeyError{
		0, "part " + p.String() + ": " + quote(text) + " is no value that could have limits of its own",
		"write the value itself, and neither its hash nor " + missingText,
	}
}

// overrideOf gives the override that finds the value of a request. Cookies are read in the form of clients.
func (f Folds) overrideOf(p Part, r *headgate.Request) (Override, bool) {
	value, present := p.lookup(r)
	if !present {
		return Override{}, false
	}
	for _, form := range [...]string{value, strings.ReplaceAll(value, "%", "%25")} {
		o := f.Override(p, Override{Value: form})
		if only, err := NewManyOverrides(p, []Override{o}); err == nil {
			if _, finds := only.Find(r); finds {
				return o, true
			}
		}
	}
	return Override{}, false
}

// OfOverride gives the NamedValue whose Override has a value.
func (f Folds) OfOverride(r *Rule, value string) (*NamedValue, error) {
	if len(r.Key) > 0 && !r.Key[0].isAddress() {
		value = strconv.Quote(value) // It is not read as the name of a part, or as a mark.
	}
	return f.NameOverride(r, value)
}

// SameOverride reports whether two values of a part are those of the same requests, so that a list has at most one of them.
func SameOverride(part Part, a, b Override) bool {
	if _, err := NewManyOverrides(part, []Override{a}); err != nil {
		return false
	}
	if _, err := NewManyOverrides(part, []Override{b}); err != nil {
		return false
	}
	_, err := NewManyOverrides(part, []Override{a, b})
	return err != nil
}
