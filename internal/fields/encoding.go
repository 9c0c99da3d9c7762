package fields

import "strings"

// Codings of bodies that are read for rules that settle by them.
const (
	codingGzip = "gzip"
	codingNone = "identity"
)

// NarrowEncodings limits the Accept-Encoding of a request to what can be read of its answer: gzip, or identity if the client does not
// accept gzip. A request without the field stays without it, and one that names no other coding stays as it is.
func NarrowEncodings(h Header) {
	if narrow, changes := ReadableEncoding(h.Lines("Accept-Encoding")); changes {
		h.Set("Accept-Encoding", []string{narrow})
	}
}

// ReadableEncoding gives the Accept-Encoding in place of lines, as NarrowEncodings sets it. changes is false if lines can stay.
func ReadableEncoding(lines []string) (narrow string, changes bool) {
	narrow = codingNone
	for _, line := range lines {
		for option := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(option, ";")
			switch name = strings.Trim(name, " \t"); {
			case name == "":
			case strings.EqualFold(name, codingNone):
			case strings.EqualFold(name, codingGzip):
				if !refused(weight) {
					narrow = codingGzip
				}
			case name == "*" && !refused(weight):
				narrow, changes = codingGzip, true
			default:
				changes = true
			}
		}
	}
	return narrow, changes
}

// refused reports whether a parameter of Accept-Encoding is a weight of 0.
func refused(weight string) bool {
	name, value, _ := strings.Cut(strings.Trim(weight, " \t"), "=")
	if !strings.EqualFold(strings.Trim(name, " \t"), "q") {
		return false
	}
	value = strings.Trim(value, " \t")
	return value != "" && strings.Trim(value, "0.") == ""
}
