package http1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// MayBegin reports whether bytes may be the beginning of a request that is in strict form,
// as far as its complete lines tell. net/http answers other requests before they end.
func MayBegin(b []byte) bool {
	line, rest, found := bytes.Cut(b, []byte("\n"))
	if !found {
		return len(b) == 0 || bytes.IndexByte(b, 0) < 0 && b[0] > ' '
	}
	text, strict := strings.CutSuffix(string(line), "\r")
	method, target, version, ok := cutLine(text)
	if !strict || !ok || version != "HTTP/1.1" || !known(method) && !isToken(method) {
		return false
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return false
	}
	end := bytes.LastIndexByte(rest, '\n')
	if end < 0 {
		return true
	}
	var fields Fields
	_, ok = fields.Parse(string(rest[:end+1])+"\r\n", make(http.Header))
	return ok
}

func isToken(name string) bool {
	for i := range len(name) {
		if bytesTable[name[i]] == notToken {
			return false
		}
	}
	return name != ""
}
