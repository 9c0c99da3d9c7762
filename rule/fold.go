package rule

import "strings"

// Folds say what of a path a service disregards. Rules then match and count all paths
// that the service takes for one as that one. The zero Folds compare paths as they are.
type Folds struct {
	// Case takes /V1/Product for /v1/product.
	Case bool
	// TrailingSlash takes /v1/product/ for /v1/product.
	TrailingSlash bool
	// Parameters takes /v1;a=b/product;c for /v1/product, as servlet containers do.
	Parameters bool
}

// Needs gives what the Folds depend on: with Parameters a plain path.
func (f Folds) Needs() Needs {
	if f.Parameters {
		return NeedPlainParameters
	}
	return 0
}

// Path gives the path that stands for a cleaned path. It allocates only where that
// differs in more than its end.
func (f Folds) Path(path string) string {
	if f.Parameters && strings.IndexByte(path, ';') >= 0 {
		path = withoutParameters(path)
	}
	if f.TrailingSlash {
		for len(path) > 1 && path[len(path)-1] == '/' {
			path = path[:len(path)-1]
		}
	}
	if f.Case {
		path = strings.ToLower(path)
	}
	return path
}

// Pattern gives the path of a rule for paths that Path has folded.
func (f Folds) Pattern(pattern string) string {
	plain, kind := splitPath(pattern)
	switch kind {
	case pathAlways:
		return pattern
	case pathPrefix:
		return f.Path(plain) + "/*"
	default:
		return f.Path(plain)
	}
}

// withoutParameters removes what follows a semicolon in each segment, and the segments
// within the path that are empty then.
func withoutParameters(path string) string {
	var b strings.Builder
	b.Grow(len(path))
	for rest, more := path[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		name, _, cut := strings.Cut(segment, ";")
		if cut && name == "" && more {
			continue
		}
		b.WriteByte('/')
		b.WriteString(name)
	}
	return b.String()
}
