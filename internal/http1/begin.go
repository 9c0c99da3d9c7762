package http1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// Beginning looks at the bytes of a request while they arrive. It looks at each line once, because
// a client may send each byte on its own. The zero Beginning is ready for a request.
type Beginning struct{ seen int }

// May reports whether b may be the beginning of a request that is in strict form, as far as its
// complete lines tell. net/http answers other requests before they end. b begins with the bytes of
// the calls before.
func (s *Beginning) May(b []byte) bool {
	if s.seen == 0 {
		line, _, found := bytes.Cut(b, []byte("\n"))
		if !found {
			return len(b) == 0 || bytes.IndexByte(b, 0) < 0 && b[0] > ' '
		}
		if !mayBeLine(string(line)) {
			return false
		}
		s.seen = len(line) + 1
	}
	end := bytes.LastIndexByte(b[s.seen:], '\n') + 1
	if end == 0 {
		return true
	}
	var fields Fields
	_, ok := fields.Parse(string(b[s.seen:s.seen+end])+"\r\n", make(http.Header))
	s.seen += end
	return ok
}

// mayBeLine reports whether a request line is in strict form.
func mayBeLine(line string) bool {
	text, strict := strings.CutSuffix(line, "\r")
	method, target, version, ok := cutLine(text)
	if !strict || !ok || version != "HTTP/1.1" || !known(method) && !isToken(method) {
		return false
	}
	_, err := url.ParseRequestURI(target)
	return err == nil
}

func isToken(name string) bool {
	for i := range len(name) {
		if bytesTable[name[i]] == notToken {
			return false
		}
	}
	return name != ""
}
