package rule

import (
	"errors"
	"fmt"
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

// ErrPath means that services would read the path of a request in different ways, so that rules
// cannot match it.
var ErrPath = errors.New("rule: the request's path is ambiguous")

// ErrUnresolved is the ErrPath for a path that CleanPath would resolve if it may.
var ErrUnresolved = fmt.Errorf("%w: it has empty segments or dot segments", ErrPath)

// CleanPath returns the path that rules match and the service receives, without empty and dot segments
// if it may resolve them. raw is the path as sent, if it differs from the default encoding. The error
// is ErrPath or ErrUnresolved. A path of CleanPath is its own clean path.
func CleanPath(decoded, raw string, resolves bool) (clean string, err error) {
	if decoded == "" {
		return "/", nil // RFC 9110, section 4.2.3: both mean the same.
	}
	switch inspectPath(decoded) {
	case pathPlain:
		return decoded, nil
	case pathUnresolved:
		switch {
		case hasEscapedSlash(raw):
			return "", ErrPath
		case !resolves:
			return "", ErrUnresolved
		}
		return resolvePath(decoded), nil
	default:
		return "", ErrPath
	}
}

// inspectPath classifies a decoded path in one pass. Nearly all paths are plain.
func inspectPath(p string) pathState {
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

// resolvePath removes empty and dot segments, and keeps a trailing slash.
func resolvePath(p string) string {
	clean := path.Clean(p)
	folder := strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
	if folder && clean != "/" {
		clean += "/"
	}
	return clean
}
