package domain

import "strings"

// wildcard is a value with at least one *, cut at each *.
type wildcard struct {
	prefix, suffix string
	middle         []string // the parts between two *, without empty ones
	node           *node
}

func newWildcard(n *node) wildcard {
	parts := strings.Split(n.value, "*")
	last := len(parts) - 1
	w := wildcard{prefix: parts[0], suffix: parts[last], node: n}
	for _, part := range parts[1:last] {
		if part != "" {
			w.middle = append(w.middle, part)
		}
	}
	return w
}

// open reports whether the wildcard is a prefix and then any bytes.
func (w *wildcard) open() bool { return w.suffix == "" && len(w.middle) == 0 }

// matchRest reports whether the wildcard matches a value that begins with its prefix. It finds the
// first place of each part from left to right. A later place would leave less for the next parts.
// So the time is linear in the lengths of both texts.
func (w *wildcard) matchRest(value string) bool {
	rest, ends := strings.CutSuffix(value[len(w.prefix):], w.suffix)
	if !ends {
		return false
	}
	for _, part := range w.middle {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}
