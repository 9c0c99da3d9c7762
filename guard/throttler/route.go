package throttler

// The bounds of a route: bytes, bytes of a segment that counts as itself, and segments.
const (
	mostRoute    = 256
	mostSegment  = 64
	mostSegments = 8
)

// appendRoute appends the shape of a request: the method, and the path with * for segments that
// are probably identifiers. Requests with one shape usually need similar work. The shape ends
// after eight segments.
func appendRoute(b []byte, method, path string) []byte {
	from := len(b)
	b = append(b, method[:min(len(method), mostSegment)]...)
	b = append(b, ' ')
	for n := 0; path != "" && n < mostSegments && len(b)-from < mostRoute-mostSegment; n++ {
		segment := path
		for i := 1; i < len(path); i++ {
			if path[i] == '/' {
				segment = path[:i]
				break
			}
		}
		path = path[len(segment):]
		if identifies(segment) {
			segment = "/*"
		}
		b = append(b, segment...)
	}
	return b
}

// identifies reports whether a segment, with its slash, is probably an identifier: it is long, or
// at least a third of it are digits. A version such as /v1 is none.
func identifies(segment string) bool {
	if len(segment) > mostSegment {
		return true
	}
	if len(segment) == 3 && segment[1] == 'v' {
		return false
	}
	digits := 0
	for i := range len(segment) {
		if c := segment[i]; c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits > 0 && 3*digits >= len(segment)
}
