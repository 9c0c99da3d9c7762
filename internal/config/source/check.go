package source

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNote bounds the caller, the address, the action and the reason of a record, in bytes.
const maxNote = 4 << 10

// maxObject bounds the object of a record: a key in its text.
const maxObject = MaxName + len("customers/")

// CheckName says whether an object may have the name: 1 to MaxName bytes of printable characters in UTF-8.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("source: a name of %d bytes: use 1 to %d bytes", len(name), MaxName)
	case !printable(name):
		return fmt.Errorf("source: the name %q has a character that is not printable: remove it", name)
	}
	return nil
}

// printable reports whether a name has printable characters in UTF-8 only.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// RecordText makes a text that a record can have: a source may have objects with any bytes. Bytes that are not UTF-8, and NUL,
// become U+FFFD. A text of more than MaxText bytes is cut.
func RecordText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), MaxText+1)], "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// ParseKey is the inverse of Key.String: it reads a section, a slash and a name.
func ParseKey(text string) (Key, error) {
	section, name, found := strings.Cut(text, "/")
	for _, k := range AllKinds() {
		if found && section == k.Section() {
			return Key{k, name}, CheckName(name)
		}
	}
	return Key{}, fmt.Errorf("source: %.300q is not an object: write rules/NAME, plans/NAME or customers/NAME", text)
}

// Check says whether a source may have the key.
func (k Key) Check() error {
	if k.Kind < Rule || k.Kind > Mode {
		return fmt.Errorf("source: there is no kind %d: use Rule, Plan or Customer", k.Kind)
	}
	return CheckName(k.Name)
}

// Check says whether a writer may make the change. It does not check the object's own words.
func (w *Write) Check() error {
	r := &w.Record
	faults := []error{
		w.Key.Check(),
		checkText("the text", w.Text, MaxText),
		checkText("the former text", r.Before, MaxText), checkText("the new text", r.After, MaxText),
		checkText("the caller", r.Caller, maxNote), checkText("the address", r.Address, maxNote),
		checkText("the action", r.Action, maxNote), checkText("the reason", r.Reason, maxNote),
		checkText("the object of the record", r.Object, maxObject),
	}
	if w.Revision < 0 || w.Delete && w.Revision == 0 {
		faults = append(faults, fmt.Errorf("source: revision %d: read the object, and use its revision", w.Revision))
	}
	if r.Time.UnixNano() < 0 || r.Time.Year() > 2200 {
		faults = append(faults, fmt.Errorf("source: the record has the time %v: use the time of the change", r.Time))
	}
	if len(w.Needs) > MaxNeeds {
		faults = append(faults, fmt.Errorf("source: the change needs %d objects: name at most %d", len(w.Needs), MaxNeeds))
	}
	for _, key := range w.Needs {
		faults = append(faults, key.Check())
	}
	return errors.Join(faults...)
}

func checkText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("source: %s has %d bytes: use at most %d", what, len(text), most)
	case !utf8.ValidString(text):
		return fmt.Errorf("source: %s is not valid UTF-8: write it in UTF-8", what)
	case strings.Contains(text, "\x00"):
		return fmt.Errorf("source: %s has a NUL character: remove it", what)
	}
	return nil
}
