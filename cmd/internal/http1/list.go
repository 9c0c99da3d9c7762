package http1

import (
	"net/http"
	"slices"
	"strings"
)

// List has the fields of a message with names in canonical form. All lines of one name are together, in the order in
// which they came. A List that Load has filled is sorted by name; the names of other Lists are in the order of their first
// lines. The zero List is empty and ready to use. A List is not safe for concurrent use.
//
// A List takes the place of http.Header where each request has one: it needs no hashing, no sorting and no memory
// of its own for each name.
type List struct {
	names  []string
	values []string // values[i] is a line of names[i]
	notes  Notes
	sorted bool
}

// MostListed bounds the lines of a List that Parse fills, because its lookups compare the name with each line.
const MostListed = 64

// mostKept bounds the lines whose memory Reset keeps.
const mostKept = 64

// Reset removes all fields.
func (l *List) Reset() {
	if cap(l.names) > mostKept {
		*l = List{}
		return
	}
	clear(l.names)
	clear(l.values)
	l.names, l.values, l.notes, l.sorted = l.names[:0], l.values[:0], Notes{}, false
}

// Load replaces the fields by those of h. The lists of values are copied.
func (l *List) Load(h http.Header) {
	l.Reset()
	l.sorted = true
	for name, values := range h {
		for range values {
			l.names = append(l.names, name)
		}
	}
	slices.Sort(l.names)
	for i := 0; i < len(l.names); {
		lines := h[l.names[i]]
		l.values = append(l.values, lines...)
		i += len(lines)
	}
}

// Header returns the fields as a new map.
func (l *List) Header() http.Header {
	h := make(http.Header, len(l.names))
	values := slices.Clone(l.values)
	for from := 0; from < len(l.names); {
		to := l.end(from)
		h[l.names[from]] = values[from:to:to]
		from = to
	}
	return h
}

// AddTo adds the fields to h, in place of its own fields of the same names.
func (l *List) AddTo(h http.Header) {
	for from := 0; from < len(l.names); {
		to := l.end(from)
		h[l.names[from]] = slices.Clone(l.values[from:to])
		from = to
	}
}

// Len returns the number of lines.
func (l *List) Len() int { return len(l.names) }

// Line returns the line i.
func (l *List) Line(i int) (name, value string) { return l.names[i], l.values[i] }

// Lines implements headgate.Lines and fields.Header. The result is valid until the List changes, and must not be changed.
func (l *List) Lines(name string) []string {
	from, to := l.find(name)
	return l.values[from:to:to]
}

// Has reports whether there is a line of the name.
func (l *List) Has(name string) bool {
	from, to := l.find(name)
	return from < to
}

// Lookup implements headgate.Values. It trims the blanks around a value, which do not belong
// to it (RFC 9110, section 5.5). HTTP/2 servers keep such blanks.
func (l *List) Lookup(name string) (string, bool) {
	from, to := l.find(name)
	if from == to {
		return "", false
	}
	return strings.Trim(l.values[from], " \t"), true
}

// Get returns the value of the first line of the name, or "".
func (l *List) Get(name string) string {
	if from, to := l.find(name); from < to {
		return l.values[from]
	}
	return ""
}

// Put sets the name to one line.
func (l *List) Put(name, value string) {
	from, to := l.find(name)
	if from == to {
		l.insert(to, name, value)
		return
	}
	l.values[from] = value
	l.cut(from+1, to)
}

// Set implements fields.Header: it sets the name to the lines, which are copied.
func (l *List) Set(name string, lines []string) {
	from, to := l.find(name)
	l.cut(from, to)
	for i, line := range lines {
		l.insert(from+i, name, line)
	}
}

// Add adds a line.
func (l *List) Add(name, value string) {
	_, to := l.find(name)
	l.insert(to, name, value)
}

// Delete implements fields.Header.
func (l *List) Delete(name string) {
	if from, to := l.find(name); from < to {
		l.cut(from, to)
	}
}

// DeleteFunc removes the fields of the names for which remove returns true.
func (l *List) DeleteFunc(remove func(name string) bool) {
	kept := 0
	for from := 0; from < len(l.names); {
		to := l.end(from)
		if !remove(l.names[from]) {
			if kept < from {
				copy(l.names[kept:], l.names[from:to])
				copy(l.values[kept:], l.values[from:to])
			}
			kept += to - from
		}
		from = to
	}
	l.cut(kept, len(l.names))
}

// find returns the bounds of the lines of a name. Without any, both are where the name belongs.
func (l *List) find(name string) (from, to int) {
	if l.sorted {
		from, found := slices.BinarySearch(l.names, name)
		if !found {
			return from, from
		}
		return from, l.end(from)
	}
	for i := range l.names {
		if l.names[i] == name {
			return i, l.end(i)
		}
	}
	return len(l.names), len(l.names)
}

// end returns the end of the lines of one name that begin at from.
func (l *List) end(from int) int {
	to := from + 1
	for to < len(l.names) && l.names[to] == l.names[from] {
		to++
	}
	return to
}

func (l *List) insert(at int, name, value string) {
	if at == len(l.names) {
		l.names, l.values = append(l.names, name), append(l.values, value)
		return
	}
	l.names, l.values = slices.Insert(l.names, at, name), slices.Insert(l.values, at, value)
}

func (l *List) cut(from, to int) {
	if from < to {
		l.names, l.values = slices.Delete(l.names, from, to), slices.Delete(l.values, from, to)
	}
}
