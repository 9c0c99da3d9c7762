package http1

import (
	"bytes"
	"net/url"
	"strings"
)

// Prefix checks the bytes of a request while they arrive. It checks each line once, because a
// client may send each byte in a packet of its own. The zero Prefix is ready for a request.
type Prefix struct {
	// Many says that there are more than MostListed lines. Strict has then returned false.
	Many    bool
	checked int // bytes of complete lines
}

// Strict reports whether b can be the start of a request in strict form. It checks the complete
// lines of b, and rejects a leading blank and a NUL byte earlier. net/http answers such malformed
// requests before their header is complete. b starts with the bytes of the previous calls.
func (p *Prefix) Strict(b []byte) bool {
	if p.checked == 0 {
		line, _, found := bytes.Cut(b, []byte("\n"))
		if !found {
			return len(b) == 0 || bytes.IndexByte(b, 0) < 0 && b[0] > ' '
		}
		if !isStrictLine(string(line)) {
			return false
		}
		p.checked = len(line) + 1
	}
	end := bytes.LastIndexByte(b[p.checked:], '\n') + 1
	if end == 0 {
		return true
	}
	var fields List
	notes, ok := fields.Parse(string(b[p.checked:p.checked+end]) + "\r\n")
	p.checked += end
	p.Many = notes.Many
	return ok
}

// isStrictLine reports whether a request line is in strict form.
func isStrictLine(line string) bool {
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
