package proxy

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// headerOnlyNames are the fields that mean something before a body alone, beside those
// that httpguts knows (RFC 9110, section 6.5.1).
var headerOnlyNames = []string{
	"Cookie", "Set-Cookie", "Forwarded", "Via", "Upgrade", "Http2-Settings", "X-Real-Ip",
	fieldForwardedFor, fieldForwardedHost, fieldForwardedProto,
}

// trailerNames gives the fields that may follow the body of a request: what the request
// declared, without what only a header may say. A trailer is no way to tell the service
// later what the rules have not seen: a header that they read, who the client is, the
// request's id, or one of our marks.
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
		if httpguts.ValidTrailerHeader(plain) && !strings.HasPrefix(plain, "X-Forwarded-") && !slices.ContainsFunc(kept[:], reserved) {
			names = append(names, name)
		}
	}
	return names
}

// userIPHeaders gives the headers that name a client's address.
func (p *Proxy) userIPHeaders() []string {
	if id := p.guard.Identity(); id != nil {
		return id.UserIPHeaders
	}
	return nil
}

// plainName gives the name, in canonical spelling, that services take for this one
// where a header becomes a variable of the environment (CGI, RFC 3875, section
// 4.1.18): every mark in it is a dash. It allocates only for a name with a mark.
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

// isMark reports whether c is neither a letter nor a digit nor a dash.
func isMark(c byte) bool {
	return c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
}
