package fields

import "strings"

// pathMark is the placeholder for the request's path in a Location.
const pathMark = "{path}"

// Location returns the Location of a rule that redirects, from its template and the path of
// the request. The path is escaped, so that the client cannot change any other part of
// the URL. If the template has no host or folder before the path, the path cannot become
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
	case strings.HasSuffix(rest, "/"): // Two slashes would change the path, or start a host.
		escaped = strings.TrimPrefix(escaped, "/")
	}
	return strings.ReplaceAll(template, pathMark, escaped)
}

// escapePath encodes a decoded path for use in a path or a query. It writes all bytes
// except letters, digits, -._~ and slashes as %XX. The result begins with one slash.
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
