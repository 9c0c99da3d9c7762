package proxy

import (
	"net/textproto"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// ownOptionNames are the options of a Connection field that net/http and the reverse
// proxy handle.
var ownOptionNames = []string{"", "Close", "Keep-Alive", "Upgrade", "Te", "Host", "Content-Length", "Transfer-Encoding", "Trailer"}

// dropNominated removes the fields that a Connection field names. These fields are
// hop-by-hop and do not reach the service. They are removed before the rules run, so that
// rules see what the service sees.
//
// The fields in which a trusted peer names or describes its client are kept. A client may have listed
// them in Connection, and the peer passed the list on.
func (p *Proxy) dropNominated(l *http1.List) {
	var identity []string
	if id := p.guard.Identity(); id != nil {
		identity = id.UserIPHeaders
	}
	for _, line := range slices.Clone(l.Lines("Connection")) {
		for option := range strings.SplitSeq(line, ",") {
			name := textproto.CanonicalMIMEHeaderKey(strings.Trim(option, " \t"))
			switch {
			case slices.Contains(ownOptionNames, name):
			case name == fieldForwardedFor, name == fieldForwardedHost, name == fieldForwardedProto:
			case slices.Contains(identity, name), describesClient(name):
				keepEndToEnd(l, name)
			default:
				l.Delete(name)
			}
		}
	}
}
