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

// ignoreCase is the option of an expression that compares letters without their case.
const ignoreCase = "(?i)"

// Pattern folds the path of a rule, for comparison with paths that Path has folded. The names and the expressions of variables stay,
// and an expression ignores the case.
func (f Folds) Pattern(text string) string {
	if literal, marked := cutLiteral(text); marked {
		return literalMark + f.Path(literal)
	}
	if expression, marked := strings.CutPrefix(text, expressionMark); marked {
		rest, begins := strings.CutPrefix(expression, "^")
		if !f.Case || strings.HasPrefix(rest, ignoreCase) {
			return text
		}
		if begins {
			return expressionMark + "^" + ignoreCase + rest
		}
		return expressionMark + ignoreCase + rest
	}
	prefix, below := cutBelow(withoutVariables(text))
	if prefix == "" {
		return text
	}
	prefix, end := text[:len(prefix)], text[len(prefix):]
	if isTemplated(prefix) {
		prefix = f.template(prefix)
	} else {
		prefix = f.Path(prefix)
	}
	if !below && f.TrailingSlash && len(prefix) > 1 {
		prefix = strings.TrimRight(prefix, "/")
	}
	return prefix + end
}

// Override folds the value of an Override of a part, if it is a path or the value of a path's variable.
func (f Folds) Override(part Part, o Override) Override {
	switch {
	case part.kind == partPath && o.Many:
		o.Value = f.Pattern(o.Value)
	case part.kind == partPath:
		o.Value = f.Path(o.Value)
	case part.kind != partPathName || !f.Case:
	case o.Many && strings.HasPrefix(o.Value, expressionMark):
		o.Value = f.Pattern(o.Value)
	case o.Many:
		o.Value = lowerLiterals(o.Value)
	default:
		o.Value = strings.ToLower(o.Value)
	}
	return o
}

// Match folds the paths of a match, and of the one that it leaves out. It changes neither.
func (f Folds) Match(m Match) Match {
	m.Path = f.Pattern(m.Path)
	if m.Not != nil {
		not := f.Match(*m.Not)
		m.Not = &not
	}
	return m
}

// Matches folds the paths of all matches, in a new list.
func (f Folds) Matches(all []Match) []Match {
	folded := make([]Match, len(all))
	for i := range all {
		folded[i] = f.Match(all[i])
	}
	return folded
}

// template folds the literals of a template.
func (f Folds) template(text string) string {
	var kept []string
	segments := splitSegments(text[min(1, len(text)):], '/')
	for i, segment := range segments {
		if at := strings.IndexByte(withoutVariables(segment), ';'); f.Parameters && at >= 0 {
			if segment = segment[:at]; segment == "" && i < len(segments)-1 {
				continue
			}
		}
		if f.Case {
			segment = lowerLiterals(segment)
		}
		kept = append(kept, segment)
	}
	return "/" + strings.Join(kept, "/")
}

// lowerLiterals converts a segment to lower case, without its variables.
func lowerLiterals(segment string) string {
	var b strings.Builder
	for segment != "" {
		if closing := matchingBrace(segment); segment[0] == '{' && closing > 0 {
			b.WriteString(segment[:closing+1])
			segment = segment[closing+1:]
			continue
		}
		end := strings.IndexByte(segment[1:], '{') + 1
		if end == 0 {
			end = len(segment)
		}
		b.WriteString(strings.ToLower(segment[:end]))
		segment = segment[end:]
	}
	return b.String()
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
