package proxy

import (
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/headgate/headgate"
)

// fill reads r into req, for the rules, without copying what can be shared. It
// gives the request to forward: r itself, or a copy with the resolved path. It is
// not ok when the path has no one meaning.
func fill(req *headgate.Request, r *http.Request) (forward *http.Request, ok bool) {
	clean, ok := cleanPath(r.URL.Path, r.URL.RawPath)
	if !ok {
		return nil, false
	}
	*req = headgate.Request{
		Method: r.Method,
		Host:   cleanHost(r.Host),
		Path:   clean,
		IP:     peer(r.RemoteAddr),
		Header: headers(r.Header),
		Cookie: cookies(r.Header),
	}
	if clean == r.URL.Path {
		return r, true
	}
	resolved, at := *r, *r.URL
	at.Path, at.RawPath = clean, ""
	resolved.URL = &at
	return &resolved, true
}

// peer gives the address of the other end of the connection. The zero Addr stands
// for what is no address; rules then count it as a request without one.
func peer(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// cleanHost gives the host in lower case, without port and without the dot that
// ends a fully written name.
func cleanHost(host string) string {
	if inner, found := strings.CutPrefix(host, "["); found {
		host, _, _ = strings.Cut(inner, "]")
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// pathState says what is to be done with a path.
type pathState uint8

const (
	pathPlain      pathState = iota // as it is
	pathUnresolved                  // has segments to resolve
	pathRefused                     // has no one meaning
)

// cleanPath gives the path that rules match and that the upstream is sent. raw is
// the path as it came, where that differs from the usual encoding.
func cleanPath(decoded, raw string) (clean string, ok bool) {
	if decoded == "" {
		return "/", true
	}
	switch inspect(decoded) {
	case pathPlain:
		return decoded, true
	case pathUnresolved:
		if hasEscapedSlash(raw) {
			return "", false
		}
		return resolve(decoded), true
	default:
		return "", false
	}
}

// inspect reads a decoded path once: nearly every path is plain.
func inspect(p string) pathState {
	if p[0] != '/' {
		return pathRefused
	}
	state := pathPlain
	for i := range len(p) {
		switch c := p[i]; {
		case c < ' ' || c == 0x7f || c == '\\':
			return pathRefused
		case c != '/' || i+1 == len(p):
		case p[i+1] == '/':
			state = pathUnresolved
		case p[i+1] == '.':
			state = max(state, inspectDots(p[i+1:]))
		}
		if state == pathRefused {
			break
		}
	}
	return state
}

// inspectDots looks at a segment that begins with a dot.
func inspectDots(rest string) pathState {
	segment, _, _ := strings.Cut(rest, "/")
	name, _, parameters := strings.Cut(segment, ";")
	switch {
	case name != "." && name != "..":
		return pathPlain
	case parameters:
		return pathRefused // Some services drop the parameter first, and others never.
	default:
		return pathUnresolved
	}
}

func hasEscapedSlash(raw string) bool {
	return strings.Contains(raw, "%2f") || strings.Contains(raw, "%2F")
}

// resolve removes empty and dot segments; a path of a folder stays one.
func resolve(p string) string {
	clean := path.Clean(p)
	folder := strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
	if folder && clean != "/" {
		clean += "/"
	}
	return clean
}

// headers looks up the first value of a field. Names are canonical.
type headers http.Header

// Lookup implements headgate.Values.
func (h headers) Lookup(name string) (string, bool) {
	if values := h[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// cookies looks up the first cookie of a name in the Cookie fields. The size of
// all fields together bounds the search.
type cookies http.Header

// Lookup implements headgate.Values.
func (c cookies) Lookup(name string) (string, bool) {
	for _, field := range c["Cookie"] {
		for field != "" {
			var pair string
			pair, field, _ = strings.Cut(field, ";")
			found, value, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
			if strings.TrimRight(found, " \t") == name {
				return unquote(strings.Trim(value, " \t")), true
			}
		}
	}
	return "", false
}

// unquote drops the quotes of a cookie's value, which say nothing.
func unquote(v string) string {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}
