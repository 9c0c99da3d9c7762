package http1

import (
	"net/http"
	"strings"
)

// Response is what the header of a plain response says about the body and the connection.
type Response struct {
	// Status is 200 to 999.
	Status int
	// Length is the length of the body. Length is 0 if the response has no body, whatever
	// Content-Length says.
	Length int64
	// Close says that the sender closes the connection after the response.
	Close bool
}

// statusLine is the form of the start of a status line. Each 0 is a digit.
const statusLine = "HTTP/1.1 000"

// StartsPlain reports whether b starts with the status line of a final response in HTTP/1.1.
func StartsPlain(b []byte) bool {
	return len(b) > len(statusLine) && string(b[:9]) == statusLine[:9] && '2' <= b[9] && b[9] <= '9'
}

// ParseResponse parses the header of a plain response: text ends with the empty line. head
// says that the request was HEAD. The fields replace those of l. A plain
// response is final, and Content-Length is the only field that says where its body ends.
// After false, l has some of the fields.
func (l *List) ParseResponse(text string, head bool) (Response, bool) {
	status, fields, ok := cutStatus(text)
	if !ok {
		return Response{}, false
	}
	notes, ok := l.Parse(fields)
	if !ok || notes.TransferEncoding || notes.Trailer || notes.Upgrade || notes.Options || notes.Lengths > 1 {
		return Response{}, false
	}
	resp := Response{Status: status, Close: notes.Close}
	empty := head || status == http.StatusNoContent || status == http.StatusNotModified
	if notes.Lengths == 0 && !empty {
		return Response{}, false
	}
	if notes.Lengths == 1 {
		length, ok := ParseLength(notes.Length)
		if !ok {
			return Response{}, false
		}
		if !empty {
			resp.Length = length
		}
	}
	if notes.Close {
		l.Delete("Connection") // as net/http does
	}
	l.fixPragma()
	return resp, true
}

// cutStatus returns the status and the lines after the status line.
func cutStatus(text string) (status int, fields string, ok bool) {
	end := strings.IndexByte(text, '\n')
	if end <= len(statusLine) || text[end-1] != '\r' || text[:9] != statusLine[:9] {
		return 0, "", false
	}
	for i, c := range []byte(text[9:end]) {
		switch {
		case i < 3:
			if c < '0' || c > '9' {
				return 0, "", false
			}
			status = status*10 + int(c-'0')
		case i == 3 && c != ' ' && c != '\r':
			return 0, "", false
		case c < ' ' && c != '\t' && i != end-10 || c == 0x7f:
			return 0, "", false
		}
	}
	return status, text[end+1:], status >= http.StatusOK
}
