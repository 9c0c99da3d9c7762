package logs

import (
	"bytes"
	"time"
)

// parseHAProxy reads the format of option httplog, with or without what syslog puts before it, and attributes after it.
//
//	127.0.0.1:41234 [30/Nov/2026:17:20:47.123] front back/s1 0/0/1/2/3 200 123 - - ---- 1/1/0/0/0 0/0 {a|b} "GET / HTTP/1.1"
func parseHAProxy(r *Reader, line []byte, l *Line) bool {
	open := haproxyTime(line)
	if open < 2 {
		return false
	}
	const date = len("30/Nov/2026:17:20:47.123")
	client := line[:open-1]
	client = client[bytes.LastIndexByte(client, ' ')+1:]
	if port := bytes.LastIndexByte(client, ':'); port >= 0 { // An address of IPv6 has no brackets here.
		client = client[:port]
	}
	l.Client = readAddress(client)
	at, unit, ok := r.clocks.readCommon(line[open+1 : open+1+date])
	if !ok {
		return false
	}
	quote := bytes.IndexByte(line[open:], '"')
	if quote < 0 {
		return false
	}
	words, rest := line[open+date+2:open+quote], line[open+quote+1:]
	var word [5][]byte // the space, the frontend, the server, the times and the status
	for i := range word {
		word[i], words = token(words)
	}
	times := &r.times
	times.start, times.unit = time.Duration(at), unit
	head, timers, _ := bytes.Cut(word[3], []byte{'/'})
	last := bytes.LastIndexByte(timers, '/')
	if last < 0 {
		return false
	}
	if times.head, ok = readDuration(head, time.Millisecond); !ok {
		return false
	}
	if l.Duration, ok = readDuration(timers[last+1:], time.Millisecond); !ok {
		return false
	}
	if l.Status, ok = readStatus(word[4]); !ok {
		return false
	}
	request, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || !r.attributes(rest, l, times) {
		return false
	}
	request = r.sharp(request)
	times.settle(r, l)
	return r.request(request, l, times)
}

// haproxyTime finds the bracket of [30/Nov/2026:17:20:47.123].
func haproxyTime(line []byte) int {
	for from := 0; ; {
		open := bytes.IndexByte(line[from:], '[')
		if open < 0 {
			return -1
		}
		open += from
		if len(line) > open+26 && line[open+3] == '/' && line[open+7] == '/' && line[open+21] == '.' && line[open+25] == ']' {
			return open
		}
		from = open + 1
	}
}

// sharp undoes #HH, as HAProxy writes bytes that it escapes.
func (r *Reader) sharp(text []byte) []byte {
	if bytes.IndexByte(text, '#') < 0 {
		return text
	}
	from := len(r.scratch)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '#' && i+2 < len(text) && hexDigit(text[i+1]) >= 0 && hexDigit(text[i+2]) >= 0 {
			c = byte(hexDigit(text[i+1])<<4 | hexDigit(text[i+2]))
			i += 2
		}
		r.scratch = append(r.scratch, c)
	}
	return r.scratch[from:len(r.scratch):len(r.scratch)]
}

// parseSquid reads the native format of squid, with attributes after it.
//
//	1772366400.123    106 192.0.2.7 TCP_MISS/200 412 GET http://example.com/path - HIER_DIRECT/192.0.2.9 text/html
func parseSquid(r *Reader, line []byte, l *Line) bool {
	var word [8][]byte
	for i := range word {
		line = bytes.TrimLeft(line, " ")
		word[i], line = token(line)
	}
	if len(word[7]) == 0 || bytes.IndexByte(word[0], '.') != 10 {
		return false
	}
	at, unit, ok := readNumber(word[0], time.Second)
	if !ok {
		return false
	}
	if l.Duration, ok = readDuration(word[1], time.Millisecond); !ok {
		return false
	}
	l.Client = readAddress(word[2])
	result, status, found := bytes.Cut(word[3], []byte{'/'})
	if l.Status, ok = readStatus(status); !ok || !found {
		return false
	}
	times := &r.times
	times.end, times.unit = time.Duration(at), unit
	if bytes.HasPrefix(word[6], []byte("error:")) {
		if l.Skip = BadRequest; bytes.HasPrefix(result, []byte("NONE")) && l.Status == 0 {
			l.Skip = NoRequest
		}
		return true
	}
	if !r.attributes(line, l, times) {
		return false
	}
	times.settle(r, l)
	if !isMethod(word[5]) {
		l.Skip = BadRequest
		return true
	}
	l.Method = word[5]
	l.target(word[6])
	return true
}

// parseEnvoy reads the default format of Envoy, and that of Istio.
//
//	[2016-04-15T20:17:00.310Z] "POST /v1/a HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "a.example" "tcp://10.0.2.1:80"
func parseEnvoy(r *Reader, line []byte, l *Line) bool {
	end := bytes.IndexByte(line, ']')
	if end < 0 || line[0] != '[' {
		return false
	}
	at, unit, ok := r.clocks.readISO(line[1:end])
	if !ok {
		return false
	}
	l.Arrival, l.Resolution = at, unit
	rest, ok := bytes.CutPrefix(line[end+1:], []byte(` "`))
	if !ok {
		return false
	}
	request, rest, ok := r.quoted(rest)
	if !ok || len(rest) == 0 {
		return false
	}
	status, rest := token(rest[1:])
	if l.Status, ok = readStatus(status); !ok {
		return false
	}
	_, rest = token(rest) // response flags
	if rest, ok = r.istio(rest); !ok {
		return false
	}
	var word [4][]byte // bytes received and sent, the duration, the upstream's time
	for i := range word {
		word[i], rest = token(rest)
	}
	if l.Duration, ok = readDuration(word[2], time.Millisecond); !ok {
		return false
	}
	return r.envoyTexts(rest, l) && r.request(request, l, &r.times)
}

// istio skips the details of Istio's format, which stand before the numbers.
func (r *Reader) istio(rest []byte) ([]byte, bool) {
	if len(rest) > 0 && (digit(rest[0]) || rest[0] == '-') {
		return rest, true
	}
	_, rest = token(rest)
	_, rest = token(rest)
	if len(rest) == 0 || rest[0] != '"' {
		return nil, false
	}
	_, rest, ok := r.quoted(rest[1:])
	return bytes.TrimLeft(rest, " "), ok
}

// envoyTexts reads the quoted texts of Envoy, the addresses of Istio, and attributes.
func (r *Reader) envoyTexts(rest []byte, l *Line) bool {
	for i := 0; len(rest) > 0 && rest[0] == '"'; i++ {
		value, after, ok := r.quoted(rest[1:])
		if !ok {
			return false
		}
		rest = bytes.TrimLeft(after, " ")
		switch i {
		case 0:
			r.part(r.forwardedPart, value, l)
		case 1:
			r.part(r.agentPart, value, l)
		case 2:
			r.part(r.idPart, value, l)
		case 3:
			assignText(slotHost, value, l)
		}
	}
	words := rest
	for from := 0; from < 4 && len(words) > 0; from++ { // cluster, upstream local, downstream local, downstream remote
		var word []byte
		if word, words = token(words); bytes.IndexByte(word, '=') >= 0 {
			break
		}
		if from == 3 {
			l.Client = readAddress(word)
		}
	}
	times := &r.times
	return r.attributes(rest, l, times)
}

func (r *Reader) part(i int, value []byte, l *Line) {
	if i >= 0 {
		l.Parts[i] = logged(value)
	}
}

// parseTraefik reads the common format of Traefik, which ends in the number of the request, its router, its server and its duration.
//
//	192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12 "-" "-" 1 "whoami@docker" "http://172.18.0.2:80" 2ms
func parseTraefik(r *Reader, line []byte, l *Line) bool {
	last := bytes.LastIndexByte(line, ' ')
	text, found := bytes.CutSuffix(line[last+1:], []byte("ms"))
	if last < 0 || !found || !parseCombined(r, line[:last], l) {
		return false
	}
	var ok bool
	l.Duration, ok = readDuration(text, time.Millisecond)
	return ok
}
