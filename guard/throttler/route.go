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
		end, digits := 0, 0
		for i := range len(path) {
			if c := path[i]; c == '/' && i > 0 {
				break
			} else if c-'0' <= 9 {
				digits++
			}
			end = i + 1
		}
		if identifies(path[:end], digits) {
			b = append(b, "/*"...)
		} else {
			b = append(b, path[:end]...)
		}
		path = path[end:]
	}
	return b
}

// identifies reports whether a segment, with its slash, is probably an identifier: it is long, or
// at least a third of it are digits. A version such as /v1 is none.
func identifies(segment string, digits int) bool {
	switch {
	case len(segment) > mostSegment:
		return true
	case digits == 0, len(segment) == 3 && segment[1] == 'v':
		return false
	default:
		return 3*digits >= len(segment)
	}
}
