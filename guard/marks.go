package guard

import (
	"net/textproto"
	"strings"
)

// FieldMark is the header that tells caller and service of a soft limit.
const FieldMark = "Headgate-Warning"

// maxDashes bounds the dashes of a name with all spellings listed: there are two spellings for each
// dash. For a longer name, only the two uniform spellings are listed.
const maxDashes = 8

// spellings gives the names, in canonical spelling, that a service may take for name, and name
// first. Where a header becomes a variable of the environment (CGI, RFC 3875, section 4.1.18),
// "-" and "_" are the same.
func spellings(name string) []string {
	dashes := strings.Count(name, "-")
	if dashes > maxDashes {
		return []string{name, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "-", "_"))}
	}
	words := strings.Split(name, "-")
	all := []string{words[0]}
	for _, word := range words[1:] {
		longer := make([]string, 0, 2*len(all))
		for _, mark := range [...]string{"-", "_"} {
			for _, begin := range all {
				longer = append(longer, begin+mark+word)
			}
		}
		all = longer
	}
	for i := range all {
		all[i] = textproto.CanonicalMIMEHeaderKey(all[i])
	}
	return all
}
