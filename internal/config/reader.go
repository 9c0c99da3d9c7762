package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/tokens"
)

// reader walks the tree of one file and collects faults. It continues after a fault, so that
// the author sees all faults at once.
type reader struct {
	source *document
	// environment looks up an environment variable.
	environment func(name string) (string, bool)
	root        *yaml.Node
	// nullable is set if a field without a value counts as missing.
	nullable bool
	faults   Faults
	// full is set when there are more than maxFaults faults. Further faults are dropped.
	full      bool
	listeners []listener
	// authenticated are the fields auth of listeners whose clients must prove who they are.
	authenticated []value
	// files are the fields that name files.
	files []file
	// bodies are the files of on_exceed.body_file.
	bodies []*bodyFile
	// networks are the files of networks; nil if no file is read. unreadNetworks is then set if the configuration names one.
	networks       *networkFiles
	unreadNetworks bool
	// proxyOnly are the settings of the file that only headgate proxy uses.
	proxyOnly []string
	aliases   int
	// fixed are the values that a reload cannot change.
	fixed field.Fixed
	// outline collects a schema. It is nil unless Schema runs the reader.
	outline *outline
	// zones are the time zones that were loaded, by their names.
	zones map[string]*time.Location
	// overridden counts the overrides of all rules.
	overridden int
	// patterned counts the patterns of all overrides.
	patterned int
	// calendarMonths makes a month of envoyproxy/ratelimit's files one of the calendar.
	calendarMonths bool
	// counting has the settings of the store that the rules depend on.
	counting counting
	// complete is set if the tree has the rules and plans of the source too. deferred is set if it lacks them: then
	// the file may name plans and quotas that only the source has.
	complete, deferred bool
	// sourced is set if the file names a source, whose objects are written one after another.
	sourced bool
	// quotaFacts is what customers of a source are checked against.
	quotaFacts *quotaReading
	// priceTable has the prices of the top level. priced is set if the file has them, and usesPrices if a rule uses them.
	priceTable         []tokens.Price
	priced, usesPrices bool
	// hidden are the lines, and secrets the texts, that must not appear in excerpts.
	hidden  map[int]bool
	secrets []string
}

// value is one value of the configuration and its position.
type value struct {
	path string
	node *yaml.Node
	// variable is the environment variable that set the value, or "".
	variable string
}

func (v value) text() string { return v.node.Value }

// fault notes a fault of v.
func (r *reader) fault(v value, problem, fix string) { r.faultAt(v, 0, problem, fix) }

// faultAt notes a fault at offset, in bytes, within the text of v.
func (r *reader) faultAt(v value, offset int, problem, fix string) {
	if v.variable != "" {
		r.note(Fault{File: v.variable, Path: v.path, Problem: withoutTokens(problem), Fix: fix})
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

// result returns the sorted faults, or nil.
func (r *reader) result() error {
	if len(r.faults) == 0 {
		return nil
	}
	r.faults.sort()
	r.hideExcerpts()
	r.cutPaths()
	if r.full {
		r.faults = append(r.faults, Fault{
			File: r.source.name, Problem: fmt.Sprintf("there are more than %d faults", maxFaults), Fix: "fix these first",
		})
	}
	return r.faults
}

// hide keeps the line and the text of a value with a possible password out of all excerpts,
// because faults are often logged.
func (r *reader) hide(v value) {
	if v.variable != "" {
		return // A variable has no excerpt.
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

// maxShownPath bounds a path in a fault. Only paths with very long names are longer.
const maxShownPath = 256

// cutPaths shortens long paths. It must run last, because blamed compares whole paths.
func (r *reader) cutPaths() {
	for i := range r.faults {
		if f := &r.faults[i]; len(f.Path) > maxShownPath {
			f.Path = strings.ToValidUTF8(f.Path[:maxShownPath], "") + "..."
		}
	}
}

// blamed reports whether a fault of path, or of a value within path, is noted.
func (r *reader) blamed(path string) bool {
	for i := range r.faults {
		if check.Within(r.faults[i].Path, path) {
			return true
		}
	}
	return r.full
}

// blamedAt reports whether a fault of exactly this path is noted. For a section, such a fault
// means that the section is not a mapping, or has an unknown field.
func (r *reader) blamedAt(path string) bool {
	return r.full || slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == path })
}

// place returns the position of the byte at offset of a node's text. If the file writes the
// text with escapes or over several lines, it returns the start of the value.
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

// resolve follows an alias, and rejects tags and null. It reports false if there is no usable value.
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
		r.fault(v, "a tag precedes the value", "remove it: each field has one type")
		return v, false
	case isNull(v.node):
		r.fault(v, "has no value", "write one, or remove the entry")
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

// find returns the value at a path such as "rules[3].match.hosts[1]", or the innermost value around
// the path that the file has.
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

// step goes one field or one entry into a node. Names of headers may contain dots, so the longest
// matching name wins.
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
