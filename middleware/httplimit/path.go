package httplimit

import (
	"path"
	"strings"
)

// pathState says what is to be done with a path.
type pathState uint8

const (
	pathPlain      pathState = iota // as it is
	pathUnresolved                  // has segments to resolve
	pathRefused                     // has no one meaning
)

// cleanPath gives the path that rules match and that the next handler gets. raw is
// the path as it came, where that differs from the usual encoding. The error is
// ErrPath, or errUnresolved for a path that would have to be resolved and may not be.
func cleanPath(decoded, raw string, resolves bool) (clean string, err error) {
	if decoded == "" {
		return "/", nil // RFC 9110, section 4.2.3: both mean the same.
	}
	switch inspect(decoded) {
	case pathPlain:
		return decoded, nil
	case pathUnresolved:
		switch {
		case hasEscapedSlash(raw):
			return "", ErrPath
		case !resolves:
			return "", errUnresolved
		}
		return resolve(decoded), nil
	default:
		return "", ErrPath
	}
}

// inspect reads a decoded path once: nearly every path is plain.
func inspect(p string) pathState {
	if p[0] != '/' {
		return pathRefused
	}
	state, before := pathPlain, byte(0)
	for i := range len(p) {
		c := p[i]
		switch {
		case c > '/':
			if c == '\\' || c == 0x7f {
				return pathRefused
			}
		case c < ' ':
			return pathRefused
		case before != '/':
		case c == '/':
			state = max(state, pathUnresolved)
		case c == '.':
			state = max(state, inspectDots(p[i:]))
		}
		before = c
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

// hasEscapedSemicolon finds what looks like the begin of a parameter in a decoded path, and
// is a part of the segment for services that read parameters.
func hasEscapedSemicolon(raw string) bool {
	return strings.Contains(raw, "%3b") || strings.Contains(raw, "%3B")
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
