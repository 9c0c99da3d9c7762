package proxy

import (
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"
)

// headerOnlyNames are fields that are valid only in a header, in addition to those in
// httpguts (RFC 9110, section 6.5.1).
var headerOnlyNames = []string{
	"Cookie", "Set-Cookie", "Forwarded", "Via", "Upgrade", "Http2-Settings",
}

// trailerNames returns the declared trailer fields of a request that may be forwarded, sorted. Rules
// do not see trailers, so fields that influence decisions are excluded: headers that rules
// read, client identities, the request id and the marks.
func (p *Proxy) trailerNames(declared http.Header, requestID string) []string {
	if len(declared) == 0 {
		return nil
	}
	reads := p.guard.Reads()
	kept := [...][]string{headerOnlyNames, reads.Headers, reads.Stated, p.guard.Marks(), p.userIPHeaders(), {requestID}}
	var names []string
	for name := range declared {
		same := func(reserved string) bool { return plainName(reserved) == plainName(name) }
		reserved := func(list []string) bool { return slices.ContainsFunc(list, same) }
		plain := plainName(name)
		if httpguts.ValidTrailerHeader(plain) && !describesClient(plain) && !slices.ContainsFunc(kept[:], reserved) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// userIPHeaders returns the headers that name a client's address.
func (p *Proxy) userIPHeaders() []string {
	if id := p.guard.Identity(); id != nil {
		return id.UserIPHeaders
	}
	return nil
}

// plainName returns the name that a CGI-like service would confuse with this header.
// CGI turns headers into environment variables (RFC 3875, section 4.1.18), in which "_" and
// other marks equal a dash. plainName replaces each mark with a dash, in canonical spelling.
// plainName allocates only for a name with a mark.
func plainName(name string) string {
	marks := 0
	for i := range len(name) {
		if isMark(name[i]) {
			marks++
		}
	}
	if marks == 0 {
		return name
	}
	plain := []byte(name)
	for i, c := range plain {
		if isMark(c) {
			plain[i] = '-'
		}
	}
	return http.CanonicalHeaderKey(string(plain))
}

// confusable reports whether two names have one plainName. It does not allocate: there may be
// many names and many marks.
func confusable(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if x, y := a[i], b[i]; x|0x20 != y|0x20 && !(separates(x) && separates(y)) {
			return false
		}
	}
	return true
}

func separates(c byte) bool { return c == '-' || isMark(c) }

// isMark reports whether c is not a letter, a digit or a dash.
func isMark(c byte) bool {
	return c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
}
