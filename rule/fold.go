package rule

import "strings"

// Folds describe which differences between paths a service ignores. Rules then treat
// these paths as one path. The zero Folds compare paths exactly.
type Folds struct {
	// Case treats /V1/Product as /v1/product.
	Case bool
	// TrailingSlash treats /v1/product/ as /v1/product.
	TrailingSlash bool
	// Parameters treats /v1;a=b/product;c as /v1/product, as servlet containers do.
	Parameters bool
}

// Needs returns the needs of the Folds: NeedPlainParameters with Parameters.
func (f Folds) Needs() Needs {
	if f.Parameters {
		return NeedPlainParameters
	}
	return 0
}

// Path folds a cleaned path. Path allocates only if the result differs in more than its
// end.
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

// Pattern folds the path of a rule, for comparison with paths that Path has folded.
func (f Folds) Pattern(pattern string) string {
	plain, kind := splitPath(pattern)
	switch kind {
	case pathAlways:
		return pattern
	case pathPrefix:
		return f.Path(plain) + "/*"
	default:
		return pattern[:len(pattern)-len(plain)] + f.Path(plain) // The mark of a literal stays.
	}
}

// withoutParameters removes the semicolon and the text after it from each segment. It
// then removes the empty segments, except at the end.
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
