package rule

import (
	"fmt"
	"path"
	"strings"
)

// pathKind says how a rule's path is compared.
type pathKind uint8

const (
	pathExact  pathKind = iota
	pathPrefix          // the path and all paths below it
	pathAlways          // every path
)

// splitPath returns the kind of a checked path pattern, and its path without "/*" and the mark of a literal.
func splitPath(pattern string) (plain string, kind pathKind) {
	if literal, marked := cutLiteral(pattern); marked {
		return literal, pathExact
	}
	if pattern == "" || pattern == "/*" {
		return "", pathAlways
	}
	if prefix, ok := strings.CutSuffix(pattern, "/*"); ok {
		return prefix, pathPrefix
	}
	return pattern, pathExact
}

// checkPath refuses patterns that match no request. The path of a request is decoded
// and cleaned, and has no query.
func checkPath(pattern string) fault {
	plain, kind := splitPath(pattern)
	if literal, marked := cutLiteral(pattern); marked {
		return checkLiteralPath(literal)
	}
	if kind == pathAlways {
		return fault{}
	}
	if f := pathPatternFault(strings.TrimSuffix(pattern, "/*")); f != (fault{}) {
		return pathPatternFault(pattern)
	}
	return checkPlainPath(pattern, plain, kind)
}

// checkLiteralPath checks the text behind the mark of a literal.
func checkLiteralPath(literal string) fault {
	switch {
	case literal == "":
		return fault{"has no path after =", `write the path, like "=/a*b"`}
	case literal[0] != '/':
		return fault{quote(literalMark+literal) + " does not begin with /", "write " + quote(literalMark+"/"+literal)}
	}
	return checkPlainPath(literal, literal, pathExact)
}

// checkPlainPath refuses paths that no request has.
func checkPlainPath(pattern, plain string, kind pathKind) fault {
	switch {
	case pattern[0] != '/':
		return fault{quote(pattern) + " does not begin with /", "write " + quote("/"+pattern)}
	case len(pattern) > maxPath:
		return fault{fmt.Sprintf("is %d bytes long", len(pattern)), fmt.Sprintf("use at most %d", maxPath)}
	case kind == pathPrefix && strings.Count(plain, "/") > maxSegments:
		return fault{fmt.Sprintf("is a prefix of %d segments", strings.Count(plain, "/")), fmt.Sprintf("use at most %d", maxSegments)}
	case strings.ContainsAny(plain, "?#"):
		return fault{quote(pattern) + " has a query or a fragment", "end the path before ? and #"}
	case hasEscape(plain):
		return fault{quote(pattern) + " is percent-encoded", "write it decoded, as in /a b for /a%20b"}
	case isUnclean(plain, kind):
		return fault{quote(pattern) + " has an empty, . or .. segment", "write the cleaned path: " + quote(path.Clean(pattern))}
	}
	return fault{}
}

// hasEscape reports whether plain has a % with two hexadecimal digits.
func hasEscape(plain string) bool {
	for i := 0; i+2 < len(plain); i++ {
		if plain[i] == '%' && isHex(plain[i+1]) && isHex(plain[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isUnclean reports whether plain has segments that cleaning removes. An exact path may
// end in a slash.
func isUnclean(plain string, kind pathKind) bool {
	segments := strings.Split(plain[1:], "/")
	for i, segment := range segments {
		mayBeEmpty := kind == pathExact && i == len(segments)-1
		if segment == "." || segment == ".." || segment == "" && !mayBeEmpty {
			return true
		}
	}
	return false
}
