package report

import (
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// Bounds of what a line shows of a request, in bytes before escaping. An id of a front has at most 128 bytes, and a host 253 and a
// port. A path may be longer: the access log has it.
const (
	mostID     = 128
	mostMethod = 32
	mostHost   = 260
	mostPath   = 512
)

// lineRequest is what a line says about the request. Its texts are those of the client, escaped.
type lineRequest struct{ id, method, host, path string }

// describeRequest copies the texts of a request, because a line outlives it.
func describeRequest(req *headgate.Request) lineRequest {
	if req == nil {
		return lineRequest{}
	}
	host := req.Authority
	if host == "" {
		host = req.Host
	}
	return lineRequest{
		printable(req.ID, mostID), printable(req.Method, mostMethod), printable(host, mostHost), printable(req.Path, mostPath),
	}
}

func (r *lineRequest) size() int { return len(r.id) + len(r.method) + len(r.host) + len(r.path) }

// append appends the fields of a line, without those that the front does not know.
func (r *lineRequest) append(attrs []slog.Attr) []slog.Attr {
	for _, a := range [...]struct{ name, value string }{
		{"request_id", r.id}, {"method", r.method}, {"host", r.host}, {"path", r.path},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	return attrs
}

// printable returns a copy of the first bytes of a text of a client, with an ellipsis if there are more. Handlers escape quotes and
// control characters of ASCII. This function escapes all other characters that a terminal may interpret.
func printable(text string, most int) string {
	more := ""
	if len(text) > most {
		text, more = strings.ToValidUTF8(text[:most], ""), "..." // A character may have been cut in two.
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c == utf8.RuneError || !strconv.IsPrint(c) }) {
		quoted := strconv.Quote(text)
		return quoted[1:len(quoted)-1] + more
	}
	return strings.Clone(text) + more
}
