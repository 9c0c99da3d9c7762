package config

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// socket reads the path of a unix socket. The servers of other addresses would be from begin to end.
func (t *storeText) socket(begin, end int) *addressFault {
	path, err := url.PathUnescape(t.text[end:])
	switch {
	case begin < end:
		return t.fault(begin, "has a host before the path of its socket")
	case strings.ContainsAny(t.text[end:], "?#"):
		return &addressFault{
			end, "has a ? or # in the path of its socket",
			"write it percent-encoded, as %3F or %23, or remove it: a socket has only database 0",
		}
	case err != nil:
		return &addressFault{end, "has a % in the path of its socket without two hexadecimal digits after it", "write %25 for a % itself"}
	case len(path) < 2 || strings.HasSuffix(path, "/"):
		return t.fault(end, "has no path of a socket")
	case len(path) > maxSocketPath:
		problem := fmt.Sprintf("has a socket with a path of more than %d bytes", maxSocketPath)
		return &addressFault{end, problem, "use a shorter path, such as a symbolic link"}
	case strings.ContainsFunc(path, unicode.IsControl):
		return t.fault(end, "has a control character in the path of its socket")
	}
	t.store.Addresses = []string{path}
	return nil
}

// Socket returns the path of the unix socket of a store in Redis, or "" for a store with servers.
func (s *SharedStore) Socket() string {
	if len(s.Addresses) == 1 && strings.HasPrefix(s.Addresses[0], "/") {
		return s.Addresses[0]
	}
	return ""
}

// socketText writes the path of a socket for an address.
func socketText(path string) string {
	return strings.ReplaceAll((&url.URL{Path: path}).EscapedPath(), "@", "%40")
}
