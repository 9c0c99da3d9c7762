package fields

import "net/http"

// Header is the header of a response that this package reads and changes. Names are in canonical form.
type Header interface {
	// Lines returns the lines of a name, in their order. The caller must not change them.
	Lines(name string) []string
	// Set sets the lines of a name.
	Set(name string, lines []string)
	// Delete removes the lines of a name.
	Delete(name string)
}

// Map is the Header of net/http.
type Map http.Header

// Lines implements Header.
func (m Map) Lines(name string) []string { return m[name] }

// Set implements Header.
func (m Map) Set(name string, lines []string) { m[name] = lines }

// Delete implements Header.
func (m Map) Delete(name string) { delete(m, name) }
