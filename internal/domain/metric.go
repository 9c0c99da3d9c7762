package domain

import (
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// maxMetricBytes bounds the name of a metric. Clients choose the values in it.
const maxMetricBytes = 1024

// AppendMetric appends the name of the metric of a descriptor: the domain, and for each entry a
// dot, the name, and in most cases an underscore and the value. m is the result of Find for the
// same entries.
//
// A value is as written in the tree, and left out for a node without a value. On a level with
// value_to_metric, it is the value of the descriptor. With detailed_metric on the last node, all
// values are those of the descriptor. A wildcard with share_threshold stays in every case. With a
// nil m, or the zero Match, all values are those of the descriptor.
//
// The characters : and |, control characters, invalid UTF-8 and the dots of an IPv4 address become
// underscores. The name has at most 1,024 bytes. AppendMetric allocates nothing if dst has enough
// capacity.
func AppendMetric(dst []byte, domain string, entries headgate.Descriptors, m *Match) []byte {
	n := metricName{dst, len(dst), len(dst) + maxMetricBytes}
	n.text(domain)
	detailed := m != nil && m.depth > 0 && m.nodes[m.depth-1].detailedMetric
	always := detailed && !m.shares(entries)
	for i := range entries {
		if len(n.dst) >= n.end {
			break
		}
		n.text(".")
		n.text(entries[i].Name)
		value := entries[i].Value
		if pattern, shared := m.pattern(i); shared {
			value = pattern
		} else if m != nil && i < m.depth && !detailed && !m.nodes[i].metric {
			value = m.nodes[i].value
		}
		if value != "" || always {
			n.text("_")
			n.text(value)
		}
	}
	joinAddresses(n.dst[n.start:])
	return n.dst
}

// FixedMetric reports whether AppendMetric gives one name for all values that lead to the last node.
func (m *Match) FixedMetric() bool {
	if m.depth == 0 || m.nodes[m.depth-1].detailedMetric {
		return false
	}
	for i := range m.depth {
		if m.nodes[i].metric {
			return false
		}
	}
	return true
}

// shares reports whether a wildcard replaces another value.
func (m *Match) shares(entries headgate.Descriptors) bool {
	for i := range min(m.depth, len(entries)) {
		if m.nodes[i].share && m.nodes[i].value != entries[i].Value {
			return true
		}
	}
	return false
}

// metricName appends the parts of a name up to the position end.
type metricName struct {
	dst        []byte
	start, end int
}

func (n *metricName) text(text string) {
	for _, c := range text {
		if c == ':' || c == '|' || c == utf8.RuneError || unicode.IsControl(c) {
			c = '_'
		}
		if len(n.dst)+utf8.RuneLen(c) > n.end {
			n.end = len(n.dst)
			return
		}
		n.dst = utf8.AppendRune(n.dst, c)
	}
}

// joinAddresses replaces the dots of IPv4 addresses: four numbers of one to three digits, with dots
// between them.
func joinAddresses(name []byte) {
	for i := 0; i < len(name); {
		end := max(i+1, addressEnd(name, i))
		for address := end > i+1; i < end; i++ {
			if address && name[i] == '.' {
				name[i] = '_'
			}
		}
	}
}

// addressEnd returns the end of the address that begins at a position, or 0.
func addressEnd(name []byte, at int) int {
	for number := range 4 {
		if number > 0 {
			if at == len(name) || name[at] != '.' {
				return 0
			}
			at++
		}
		digits := 0
		for digits < 3 && at < len(name) && name[at] >= '0' && name[at] <= '9' {
			at, digits = at+1, digits+1
		}
		if digits == 0 {
			return 0
		}
	}
	return at
}
