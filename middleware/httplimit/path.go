package httplimit

import (
	"path"
	"strings"
)

// pathState classifies a path.
type pathState uint8

const (
	pathPlain      pathState = iota // needs no change
	pathUnresolved                  // has empty or dot segments
	pathRefused                     // is ambiguous
)

// cleanPath returns the path that rules match and the next handler receives. raw is the
// path as sent, if it differs from the default encoding. The error is ErrPath, or
// errUnresolved for a path that needs resolving when resolves is false.
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

// inspect classifies a decoded path in one pass. Nearly all paths are plain.
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

// inspectDots classifies a segment that begins with a dot.
func inspectDots(rest string) pathState {
	segment, _, _ := strings.Cut(rest, "/")
	name, _, parameters := strings.Cut(segment, ";")
	switch {
	case name != "." && name != "..":
		return pathPlain
	case parameters:
		return pathRefused // Some services drop the parameter first, and others do not.
	default:
		return pathUnresolved
	}
}

func hasEscapedSlash(raw string) bool {
	return strings.Contains(raw, "%2f") || strings.Contains(raw, "%2F")
}

// hasEscapedSemicolon reports whether the path has an escaped semicolon. After decoding it
// looks like the start of a parameter, but for services that read parameters it belongs
// to the segment.
func hasEscapedSemicolon(raw string) bool {
	return strings.Contains(raw, "%3b") || strings.Contains(raw, "%3B")
}

// resolve removes empty and dot segments, and keeps a trailing slash.
func resolve(p string) string {
	clean := path.Clean(p)
	folder := strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
	if folder && clean != "/" {
		clean += "/"
	}
	return clean
}
