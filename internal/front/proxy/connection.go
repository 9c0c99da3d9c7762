package proxy

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// ownOptionNames are the options of a Connection field that net/http and the
// reverse proxy see to.
var ownOptionNames = []string{"", "Close", "Keep-Alive", "Upgrade", "Te", "Host", "Content-Length", "Transfer-Encoding", "Trailer"}

// dropNominated removes the fields that a Connection field names: they are meant
// for us, and the service is not sent them. Rules, which come next, do not see them
// either: what a request is counted under is what the service sees.
//
// Fields by which a trusted peer says who its client is are no such fields, whatever
// the Connection field says: a client may have written it, and the peer passed it on.
func (p *Proxy) dropNominated(h http.Header) {
	var identity []string
	if id := p.guard.Identity(); id != nil {
		identity = id.UserIPHeaders
	}
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := textproto.CanonicalMIMEHeaderKey(strings.Trim(option, " \t"))
			switch {
			case slices.Contains(ownOptionNames, name):
			case name == fieldForwardedFor, name == fieldForwardedHost, name == fieldForwardedProto:
			case slices.Contains(identity, name):
				keepEndToEnd(h, name)
			default:
				delete(h, name)
			}
		}
	}
}
