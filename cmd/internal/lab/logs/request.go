package logs

import (
	"bytes"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

func asInstant(d time.Duration) headgate.Instant { return headgate.Instant(d) }

// request reads a request line, and says whether the line is a request.
func (r *Reader) request(text []byte, l *Line, times *lineTimes) bool {
	method, rest := token(text)
	target, proto := token(rest)
	switch {
	case string(text) == "<BADREQ>" || len(target) == 0 || !isMethod(method):
		l.Skip = BadRequest
		return true
	case string(method) == "PRI" && string(target) == "*":
		l.Skip = Preface
		return true
	}
	if last := bytes.LastIndexByte(proto, ' '); last >= 0 { // A target with spaces.
		target = rest[:len(target)+1+last]
	}
	l.Method = method
	l.target(target)
	if times.length == 0 && len(times.uri) > 0 && !bytes.Equal(times.uri, l.Path) {
		l.Skip = Subrequest
	}
	return true
}

// tokenBytes are the bytes of a token of HTTP beside capital letters.
const tokenBytes = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

// isMethod reports whether a text is a token of HTTP.
func isMethod(text []byte) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && !strings.ContainsRune(tokenBytes, rune(c)) {
			return false
		}
	}
	return len(text) > 0
}

// target reads what follows the method: a path, an absolute URL, *, or host:port.
func (l *Line) target(target []byte) {
	scheme, rest, absolute := target, target, false
	if len(target) > 0 && target[0] != '/' {
		scheme, rest, absolute = bytes.Cut(target, []byte("://"))
	}
	if absolute && !bytes.ContainsAny(scheme, "/?") {
		end := bytes.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		if len(l.Host) == 0 {
			l.Host = rest[:end]
		}
		target = rest[end:]
	}
	target, _, _ = bytes.Cut(target, []byte{'#'})
	if l.Path, l.Query, _ = bytes.Cut(target, []byte{'?'}); len(l.Path) == 0 {
		l.Path = l.slash[:]
	}
}
