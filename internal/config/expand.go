package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/field"
)

// Bounds of all values that aliases repeat, together. A file of maxFileBytes without aliases can
// have more: 600,000 entries, and 8 MiB of text.
const (
	maxRepeatedEntries = 100_000
	maxRepeatedBytes   = 4 << 20
)

// extent is the size of a node after each alias within it is replaced by its value.
type extent struct{ entries, bytes int }

func (e *extent) add(other extent) {
	e.entries += other.entries
	e.bytes += other.bytes
}

// expansion measures a parsed file before the reader walks it. An alias costs the parser only a few
// bytes, but costs the reader as much as the value that it repeats.
type expansion struct {
	source *document
	// anchored has each measured value that has an anchor. An alias comes after its value.
	anchored map[*yaml.Node]extent
	repeated extent // The sum over all aliases so far.
	fault    *Fault
}

// checkAliases returns the fault of the first alias at which the file repeats too much, or nil.
func (s *document) checkAliases(root *yaml.Node) *Fault {
	x := expansion{source: s, anchored: map[*yaml.Node]extent{}}
	x.measure(root)
	return x.fault
}

// measure returns the extent of n. Its recursion is only as deep as the file is nested, because it
// looks up the extent of an alias.
func (x *expansion) measure(n *yaml.Node) extent {
	if n.Kind == yaml.AliasNode {
		return x.alias(n)
	}
	total := extent{1, len(n.Value)}
	for _, part := range n.Content {
		if x.fault != nil {
			return total
		}
		total.add(x.measure(part))
	}
	if n.Anchor != "" {
		x.anchored[n] = total
	}
	return total
}

func (x *expansion) alias(n *yaml.Node) extent {
	repeats, complete := x.anchored[n.Alias]
	if !complete {
		x.note(n, "the alias stands within the value that it repeats", "write the value out")
		return extent{}
	}
	x.repeated.add(repeats)
	const fix = "refer to shorter lists, or to each list less often: one rule takes several limits, and a path like /v1/* takes many paths"
	switch {
	case x.repeated.entries > maxRepeatedEntries:
		x.note(n, fmt.Sprintf("the aliases up to this one repeat more than %d entries", maxRepeatedEntries), fix)
	case x.repeated.bytes > maxRepeatedBytes:
		x.note(n, "the aliases up to this one repeat more than "+field.FormatSize(maxRepeatedBytes)+" of text", fix)
	}
	return repeats
}

func (x *expansion) note(n *yaml.Node, problem, fix string) {
	if x.fault == nil {
		f := x.source.fault(place{n.Line, n.Column}, "", problem, fix)
		x.fault = &f
	}
}
