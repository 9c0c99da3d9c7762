package http1

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate/headgate/guard/report"
)

// Head is the header of a request.
type Head struct {
	Method, Target, Host string
	// Length is the length of the body.
	Length int64
	// Close says that the client asks to close the connection after the answer.
	Close bool
	// End says that the end of the request is known, although it is not in the subset: the
	// lines are in strict form, and the body has no other framing than one Content-Length.
	End bool
}

// ParseRequest reads the header of a request: its request line and fields, up to and with
// the empty line. It puts the fields into l, with the field Host. The result is
// report.PathFast for a request in the subset, otherwise why it is not.
func (l *List) ParseRequest(text string) (head Head, why report.Path) {
	line, rest, found := strings.Cut(text, "\r\n")
	method, target, version, ok := cutLine(line)
	if !found || !ok {
		return head, report.PathSyntax
	}
	notes, ok := l.Parse(rest)
	switch {
	case notes.Many:
		return head, report.PathSize
	case !ok:
		return head, report.PathSyntax
	}
	head.Method, head.Target, head.Host, head.Close = method, target, notes.Host, notes.Close
	length, valid := int64(0), notes.Lengths == 0
	if notes.Lengths == 1 {
		length, valid = ParseLength(notes.Length)
	}
	head.Length = length
	why = reason(&head, &notes, version, valid)
	head.End = valid && !notes.TransferEncoding && !notes.Upgrade && version == "HTTP/1.1" && !tunnels(method)
	if why == report.PathFast {
		l.fixPragma()
	}
	return head, why
}

// cutLine returns the parts of a request line, which one space separates.
func cutLine(line string) (method, target, version string, ok bool) {
	method, rest, found := strings.Cut(line, " ")
	if !found {
		return "", "", "", false
	}
	if target, version, found = strings.Cut(rest, " "); !found {
		return "", "", "", false
	}
	for i := range len(line) {
		if c := line[i]; c < ' ' || c == 0x7f {
			return "", "", "", false
		}
	}
	return method, target, version, true
}

// tunnels reports whether bytes of another protocol may follow a request of the method.
func tunnels(method string) bool { return method == http.MethodConnect || method == "PRI" }

// reason returns report.PathFast for a request in the subset, otherwise why it is not.
func reason(head *Head, n *Notes, version string, validLength bool) report.Path {
	switch {
	case version != "HTTP/1.1":
		return report.PathVersion
	case !known(head.Method):
		return report.PathMethod
	case !isOrigin(head.Target):
		return report.PathTarget
	case n.Hosts != 1 || !isPlainHost(n.Host):
		return report.PathHost
	case n.TransferEncoding:
		return report.PathTransferEncoding
	case !validLength:
		return report.PathLength
	case n.Expect:
		return report.PathExpect
	case n.Upgrade:
		return report.PathUpgrade
	case n.Trailer:
		return report.PathTrailer
	case n.Options:
		return report.PathConnection
	default:
		return report.PathFast
	}
}

// known reports whether the fast path knows a method.
func known(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodTrace:
		return true
	default:
		return false
	}
}

// isOrigin reports whether a target is in origin form, in printable ASCII.
func isOrigin(target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isPlainHost reports whether a host has only bytes of names, addresses and ports.
func isPlainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '-', c == '_', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return host != ""
}

// ParseTarget sets u to the target of a request, as url.ParseRequestURI reads it. It does
// not allocate if no byte of the path needs escaping.
func ParseTarget(target string, u *url.URL) error {
	path, query, found := strings.Cut(target, "?")
	for i := range len(path) {
		if !plainInPathTable[path[i]] {
			parsed, err := url.ParseRequestURI(target)
			if err == nil {
				*u = *parsed
			}
			return err //nolint:wrapcheck // because the caller only leaves the request to net/http.
		}
	}
	*u = url.URL{Path: path, RawQuery: query, ForceQuery: found && query == ""}
	return nil
}

// plainInPathTable has the bytes that mean themselves in a path, and that url.URL writes
// unescaped.
var plainInPathTable = func() (table [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@") {
		table[c] = true
	}
	return table
}()

// LooksLikeRequest reports whether the header of a TLS record is the start of an HTTP
// request.
func LooksLikeRequest(record [5]byte) bool {
	switch string(record[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	default:
		return false
	}
}
