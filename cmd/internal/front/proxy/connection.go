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
	names := nominated(l)
	if len(names) == 0 {
		return
	}
	users := p.userIPHeaders()
	describing := func(name string) bool { return slices.Contains(users, name) || describesClient(name) }
	keepOptions(l, func(option string) bool {
		name := textproto.CanonicalMIMEHeaderKey(option)
		return slices.Contains(forwardedNames, name) || !describing(name)
	})
	l.DeleteFunc(func(name string) bool {
		_, found := slices.BinarySearch(names, name)
		return found && !slices.Contains(ownOptionNames, name) && !slices.Contains(forwardedNames, name) && !describing(name)
	})
}

// nominated returns the names of the fields that Connection lists, in canonical spelling, sorted. It returns none for the usual
// "close" and "keep-alive", and allocates nothing for them.
func nominated(l *http1.List) (names []string) {
	for _, line := range l.Lines("Connection") {
		if strings.EqualFold(line, "keep-alive") || strings.EqualFold(line, "close") && !l.Has("Close") {
			continue
		}
		for option := range strings.SplitSeq(line, ",") {
			names = append(names, textproto.CanonicalMIMEHeaderKey(strings.Trim(option, " \t\r\n")))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keepOptions removes the options of Connection for which keep returns false. A line that loses none stays as it is.
func keepOptions(l *http1.List, keep func(option string) bool) {
	lines := l.Lines("Connection")
	for i, line := range lines {
		var kept []string
		all := true
		for option := range strings.SplitSeq(line, ",") {
			if option = strings.Trim(option, " \t"); keep(option) {
				kept = append(kept, option)
			} else {
				all = false
			}
		}
		if !all {
			lines[i] = strings.Join(kept, ", ")
		}
	}
}

// keepEndToEnd removes a name from the Connection fields. Otherwise a client could list
// the header there, and the reverse proxy would drop it as hop-by-hop.
func keepEndToEnd(l *http1.List, name string) {
	longer := func(line string) bool { return len(line) >= len(name) }
	if slices.ContainsFunc(l.Lines("Connection"), longer) { // Else "close" or "keep-alive".
		keepOptions(l, func(option string) bool { return !strings.EqualFold(option, name) })
	}
}
