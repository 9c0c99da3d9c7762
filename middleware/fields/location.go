package fields

import "strings"

// pathMark is what a Location writes for the path of the request.
const pathMark = "{path}"

// Location gives the Location of a rule that redirects, from its template and the
// path of the request. The path stays a path whatever the client wrote in it: it is
// escaped, and where the template has named no host or folder yet, it cannot become
// the host.
func Location(template, path string) string {
	before, _, found := strings.Cut(template, pathMark)
	if !found {
		return template
	}
	escaped := escapePath(path)
	scheme, rest, absolute := strings.Cut(before, ":")
	if absolute = absolute && !strings.ContainsAny(scheme, "/?#"); !absolute {
		rest = before
	}
	switch named := strings.TrimLeft(rest, "/") != ""; {
	case !named && (absolute || len(rest) > 1): // "https://{path}", "//{path}"
		escaped = ""
	case strings.HasSuffix(rest, "/"): // Two slashes would be another path, or begin a host.
		escaped = strings.TrimPrefix(escaped, "/")
	}
	return strings.ReplaceAll(template, pathMark, escaped)
}

// escapePath writes a decoded path so that it holds its place in a path and in a
// query alike: all but letters, digits, -._~ and slashes as %XX. It begins with one
// slash.
func escapePath(path string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(path)+16)
	b = append(b, '/')
	for _, c := range []byte(strings.TrimLeft(path, "/")) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
