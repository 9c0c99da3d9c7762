package proxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// message is a request or a response, as strictly read from its bytes.
type wireMessage struct {
	first   string   // the request line or the status line
	fields  []string // "name: value", with names in lower case, sorted by name
	length  string   // how the sender marked the end of the body: none, a number, chunked, or close
	body    string
	trailer []string
	fault   string // why the bytes are no message; "" if they are
	whole   bool   // the message is complete
}

// values returns the values of a field, in their order.
func (m *wireMessage) values(name string) []string {
	var values []string
	for _, f := range m.fields {
		if value, found := strings.CutPrefix(f, name+": "); found {
			values = append(values, value)
		}
	}
	return values
}

// word returns the word of the first line at an index, or "".
func (m *wireMessage) word(i int) string {
	if words := strings.SplitN(m.first, " ", 3); i < len(words) {
		return words[i]
	}
	return ""
}

// parseRequest reads one request from the beginning of b, and returns the bytes after it.
// It accepts only what every HTTP/1.1 server reads in the same way.
func parseRequest(b []byte) (m wireMessage, rest []byte) {
	m, rest, ok := parseHead(b)
	if !ok {
		return m, rest
	}
	method, target, version := m.word(0), m.word(1), m.word(2)
	if !isToken(method) || target == "" || version != "HTTP/1.1" || hasControl(m.first) {
		m.fault = "the request line is malformed"
		return m, rest
	}
	if len(m.values("host")) != 1 {
		m.fault = "there is not one Host"
		return m, rest
	}
	rest = parseBody(&m, rest, false)
	return m, rest
}

// parseResponse reads one response to a request of the method from the beginning of b.
// ended says that no byte follows b.
func parseResponse(b []byte, method string, ended bool) (m wireMessage, rest []byte) {
	m, rest, ok := parseHead(b)
	if !ok {
		return m, rest
	}
	status, err := strconv.Atoi(m.word(1))
	if err != nil || status < 100 || len(m.word(1)) != 3 || !strings.HasPrefix(m.first, "HTTP/1.") || hasControl(m.first) {
		m.fault = "the status line is malformed"
		return m, rest
	}
	if method == "HEAD" || status < 200 || status == 204 || status == 304 {
		m.whole, m.length = true, strings.Join(append(m.values("content-length"), m.values("transfer-encoding")...), ", ")
		return m, rest
	}
	if len(m.values("content-length"))+len(m.values("transfer-encoding")) == 0 {
		m.length, m.body, m.whole = "close", string(rest), ended
		return m, nil
	}
	rest = parseBody(&m, rest, true)
	return m, rest
}

// parseHead reads the lines up to the empty line. ok is false if they are incomplete or
// malformed.
func parseHead(b []byte) (m wireMessage, rest []byte, ok bool) {
	head, rest, found := bytes.Cut(b, []byte("\r\n\r\n"))
	if !found {
		m.first = string(b)
		return m, nil, false
	}
	lines := strings.Split(string(head), "\r\n")
	m.first = lines[0]
	m.fields, m.fault = parseFields(lines[1:])
	return m, rest, m.fault == ""
}

func parseFields(lines []string) (fields []string, fault string) {
	fields = make([]string, 0, len(lines))
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if !found || !isToken(name) || hasControl(value) {
			return nil, "the field line " + strconv.Quote(line) + " is malformed"
		}
		fields = append(fields, strings.ToLower(name)+": "+strings.Trim(value, " \t"))
	}
	slices.SortStableFunc(fields, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, ':')], b[:strings.IndexByte(b, ':')])
	})
	return fields, ""
}

// parseBody reads the body that the fields of m announce, and returns the bytes after it.
func parseBody(m *wireMessage, b []byte, response bool) []byte {
	lengths, codings := m.values("content-length"), m.values("transfer-encoding")
	switch {
	case len(lengths) > 0 && len(codings) > 0 || len(lengths) > 1 || len(codings) > 1:
		m.fault = "the length is ambiguous"
		return b
	case len(codings) == 1:
		m.length = "chunked"
		if codings[0] != "chunked" {
			m.fault = "the coding is not chunked"
			return b
		}
		return parseChunks(m, b)
	case len(lengths) == 0 && !response:
		m.length, m.whole = "none", true
		return b
	}
	m.length = lengths[0]
	size, err := strconv.ParseUint(m.length, 10, 63)
	if err != nil {
		m.fault = "the length is malformed"
		return b
	}
	n := min(size, uint64(len(b)))
	m.body, m.whole = string(b[:n]), n == size
	return b[n:]
}

// parseChunks reads a body in chunks without extensions, and its trailer.
func parseChunks(m *wireMessage, b []byte) []byte {
	var body strings.Builder
	defer func() { m.body = body.String() }()
	for {
		line, after, found := bytes.Cut(b, []byte("\r\n"))
		if !found {
			return nil
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			m.fault = "the chunk size " + strconv.Quote(string(line)) + " is malformed"
			return b
		}
		if size == 0 {
			return parseTrailer(m, after)
		}
		body.Write(after[:min(int(size), len(after))])
		if len(after) < int(size)+2 {
			return nil
		}
		if string(after[size:size+2]) != "\r\n" {
			m.fault = "a chunk is longer than its size"
			return after
		}
		b = after[size+2:]
	}
}

func parseTrailer(m *wireMessage, b []byte) []byte {
	if after, empty := bytes.CutPrefix(b, []byte("\r\n")); empty {
		m.whole = true
		return after
	}
	lines, after, found := bytes.Cut(b, []byte("\r\n\r\n"))
	if !found {
		return nil
	}
	m.trailer, m.fault = parseFields(strings.Split(string(lines), "\r\n"))
	m.whole = m.fault == ""
	return after
}

func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0: // RFC 9110, section 5.6.2.
		default:
			return false
		}
	}
	return s != ""
}

// hasControl reports whether s has a control character other than a tab.
func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}
