package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/config/check"
	"github.com/headgate/headgate/config/field"
)

// reader walks the tree of one file and gathers what is wrong. It never stops at
// a fault: a configuration is mended once.
type reader struct {
	source *source
	// environment looks up a variable.
	environment func(name string) (string, bool)
	root        *yaml.Node
	faults      Faults
	// full is set when there are more faults than anybody reads.
	full      bool
	listeners []listener
	// files are the fields that name files.
	files []file
	// proxyOnly are the settings of the file that a Go program does not use.
	proxyOnly []string
	aliases   int
	// fixed are the values that a reload cannot change.
	fixed field.Fixed
	// outline is what a schema is made of, and nil unless one is.
	outline *outline
	// overridden counts the values of all overrides.
	overridden int
	// counting is what is known of the store.
	counting counting
	// hidden are lines that excerpts do not show, and secrets texts that they do not.
	hidden  map[int]bool
	secrets []string
}

// value is one value of the configuration and where it stands.
type value struct {
	path string
	node *yaml.Node
	// variable is the environment variable that gave the value, if one did.
	variable string
}

func (v value) text() string { return v.node.Value }

// fault notes what is wrong with v.
func (r *reader) fault(v value, problem, fix string) { r.faultAt(v, 0, problem, fix) }

// faultAt notes what is wrong at offset, in bytes, within the text of v.
func (r *reader) faultAt(v value, offset int, problem, fix string) {
	if v.variable != "" {
		r.note(Fault{File: v.variable, Path: v.path, Problem: problem, Fix: fix})
		return
	}
	r.note(r.source.fault(r.place(v.node, offset), v.path, problem, fix))
}

func (r *reader) note(f Fault) {
	switch {
	case r.full:
	case len(r.faults) == maxFaults:
		r.full = true
	default:
		r.faults = append(r.faults, f)
	}
}

// result gives the faults in order, and none as nil.
func (r *reader) result() error {
	if len(r.faults) == 0 {
		return nil
	}
	r.faults.sort()
	r.hideExcerpts()
	r.cutPaths()
	if r.full {
		r.faults = append(r.faults, Fault{
			File: r.source.name, Problem: fmt.Sprintf("there are more than %d faults", maxFaults), Fix: "mend these first",
		})
	}
	return r.faults
}

// hide keeps a value that may hold a password out of all excerpts, its line and its
// text: faults end in logs.
func (r *reader) hide(v value) {
	if v.variable != "" {
		return // It stands in no excerpt.
	}
	if r.hidden == nil {
		r.hidden = map[int]bool{}
	}
	r.hidden[v.node.Line] = true
	r.secrets = append(r.secrets, v.text())
	if _, rest, found := strings.Cut(v.text(), "//"); found {
		r.secrets = append(r.secrets, rest) // The text may be written over two lines.
	}
}

func (r *reader) hideExcerpts() {
	for i := range r.faults {
		f := &r.faults[i]
		if r.hidden[f.Line] || slices.ContainsFunc(r.secrets, func(text string) bool {
			return text != "" && strings.Contains(f.Excerpt, text)
		}) {
			f.Excerpt = ""
		}
	}
}

// maxShownPath has room for every path but one with a very long name of a header, an entry or a value.
const maxShownPath = 256

// cutPaths shortens paths once no fault is judged by another's path any more.
func (r *reader) cutPaths() {
	for i := range r.faults {
		if f := &r.faults[i]; len(f.Path) > maxShownPath {
			f.Path = strings.ToValidUTF8(f.Path[:maxShownPath], "") + "..."
		}
	}
}

// blamed reports whether a fault of path, or of a value within it, is noted.
func (r *reader) blamed(path string) bool {
	for i := range r.faults {
		if check.Within(r.faults[i].Path, path) {
			return true
		}
	}
	return r.full
}

// blamedAt reports whether a fault of just this path is noted: for a section, that
// it is none, or has a field that is not known.
func (r *reader) blamedAt(path string) bool {
	return r.full || slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == path })
}

// place gives where the byte at offset of a node's text stands. When the text is
// not written as it reads (escapes, several lines), it is where the value begins.
func (r *reader) place(n *yaml.Node, offset int) place {
	at := place{n.Line, n.Column}
	if n.Kind != yaml.ScalarNode || offset < 1 || offset > len(n.Value) || n.Line < 1 || n.Line > len(r.source.lines()) {
		return at
	}
	column := n.Column
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		column++
	}
	written := []rune(r.source.lines()[n.Line-1])
	if column < 1 || column-1 > len(written) || !strings.HasPrefix(string(written[column-1:]), n.Value[:offset]) {
		return at
	}
	return place{n.Line, column + utf8.RuneCountInString(n.Value[:offset])}
}

// resolve follows an alias and refuses what configurations have no use for. It
// reports false when there is nothing to go on with.
func (r *reader) resolve(v value) (value, bool) {
	if v.node.Kind == yaml.AliasNode {
		if r.aliases++; r.aliases > maxAliases {
			r.fault(v, fmt.Sprintf("more than %d aliases are used", maxAliases), "write the values out")
			return v, false
		}
		v.node = v.node.Alias
	}
	switch {
	case v.node == nil || v.node.Kind == yaml.AliasNode:
		return v, false
	case v.node.Style&yaml.TaggedStyle != 0:
		r.fault(v, "a tag stands before the value", "leave it out: each field has one type")
		return v, false
	case isNull(v.node):
		r.fault(v, "has no value", "write one, or leave the entry out")
		return v, false
	}
	return v, true
}

func isNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return false
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// find gives the value at a path such as "rules[3].match.hosts[1]", or the
// innermost around it that the file has.
func (r *reader) find(path string) value {
	found := value{path: path, node: r.root}
	for rest := path; rest != ""; {
		next, after := step(found.node, rest)
		if next != nil && next.Kind == yaml.AliasNode {
			next = next.Alias
		}
		if next == nil {
			break
		}
		found.node, rest = next, strings.TrimPrefix(after, ".")
	}
	return found
}

// step goes one field or one entry into a node. Names of headers have dots, so
// that the longest name counts.
func step(n *yaml.Node, path string) (next *yaml.Node, rest string) {
	if index, after, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && path[0] == '[' {
		i, err := strconv.Atoi(index)
		if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
			return nil, ""
		}
		return n.Content[i], after
	}
	if n.Kind != yaml.MappingNode {
		return nil, ""
	}
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; len(name) > longest && check.Within(path, name) {
			next, longest = n.Content[i+1], len(name)
		}
	}
	if next == nil {
		return nil, ""
	}
	return next, path[longest:]
}
