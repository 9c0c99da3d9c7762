package proxy

import (
	"fmt"
	"strings"
)

// choices turns the bytes of a fuzzer into decisions. When the bytes are used up, every decision
// is the first, which is the plainest.
type choices struct{ left []byte }

// choose returns a number below n.
func (c *choices) choose(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	b := c.left[0]
	c.left = c.left[1:]
	if n > 256 && len(c.left) > 0 {
		low := c.left[0]
		c.left = c.left[1:]
		return (int(b)<<8 | int(low)) % n
	}
	return int(b) % n
}

// oneIn reports true for one of n values of a byte.
func (c *choices) oneIn(n int) bool { return c.choose(n) == n-1 }

// text returns up to n of the fuzzer's own bytes.
func (c *choices) text(n int) string {
	n = min(c.choose(n+1), len(c.left))
	text := string(c.left[:n])
	c.left = c.left[n:]
	return text
}

// The parts of requests that the generator joins. All requests of these parts belong to the
// strict subset of the fast plane.
var (
	plainMethods = []string{"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"}
	plainTargets = []string{
		"/", "/plain?q=1", "/a/../b", "/host/x", "/cookie/x", "/user/x", "/denied/x", "/delayed/x", "/soft/x", "/redirected/x?y", "/degraded/x", "/unavailable/x", "/method/x", "/asked/x",
		"/x/many", "/x/hop", "/x/limits", "/x/own", "/x/close", "/x/eof", "/x/old", "/x/chunked", "/x/trailer", "/x/event", "/x/hints", "/x/none", "/x/same", "/x/empty", "/x/moved", "/x/missing",
		"/x/busy", "/x/odd", "/x/typed", "/x/html", "/x/broken", "/x/gone", "/x//y", "/%41%2e", "/%5cx", "/a;b", "/x?a b", "/é", "/%2e%2e/x", "/x%2fy", "//x", "/x/large", "/x/cut",
	}
	plainHosts = []string{"a.example", "A.Example", "b.example:80", "127.0.0.1", "blocked.example", "a.example.", "[::1]:8080", "a_b"}
	plainLines = []string{
		"X-Api-Key: k", "x-api-key: other", "X-Api-Key:", "Cookie: session=1; a=b", "User-Agent: t/1.0", "Accept: */*", "Accept-Encoding: gzip", "Referer: http://b/", "Connection: keep-alive", "Connection: close",
		"X: 1", "X: 2", "x: 3", "X:\t4 ", "X:", "X_Api_Key: forged", "Content-Type: text/plain", "Authorization: x", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Host: b", "X-Forwarded-Proto: https", "X-User-Ip: 5.6.7.8",
		"X-Request-Id: abc", "Headgate-Warning: forged", "X-Service-Level: forged", "X-Ask: yes", "Forwarded: for=x", "Proxy-Connection: x", "Keep-Alive: 5", "If-None-Match: \"x\"", "Range: bytes=0-1", "X: é",
		"Via: 1.1 x", "Cookie: session=2", "Proxy-Authorization: x", "Cache-Control: no-cache", "Date: x", "X-Long: " + strings.Repeat("v", 300),
	}
	oddLines = []string{
		"Transfer-Encoding: chunked", "Expect: 100-continue", "Upgrade: websocket", "TE: trailers", "Trailer: X", "Connection: X-Api-Key", "Connection: upgrade", "Content-Length: 3", "Content-Length: 0", "Host: b",
		" folded", "X : 1", "X", "X: a\x00b", "X: a\rb", "X: a\nY: b", ": 1", "Content-Length: x", "Transfer-Encoding: identity", "é: 1",
	}
	bodies = []string{"abc", "", "GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n", "0\r\n\r\n", strings.Repeat("0123456789", 500)}
)

// generated makes a conversation of a fuzzer's bytes. Most of its requests are plain. The number
// of plain ones is returned.
func (c *choices) generated(odd []*conversation) (conv *conversation, plain int) {
	conv = &conversation{name: "generated"}
	shape := c.choose(256)
	conv.trusted = shape&1 != 0
	if shape>>1&15 == 15 {
		conv.ending = ending(c.choose(int(endings)))
	}
	var sent strings.Builder
	plain = 1 + c.choose(5)
	for range plain {
		sent.WriteString(c.plain())
	}
	if plain > 1 && shape>>5 == 7 {
		plain--
		sent.WriteString(c.odd(odd))
	}
	conv.pieces = c.split(sent.String())
	return conv, plain
}

// plain makes a request of the strict subset.
func (c *choices) plain() string {
	var r strings.Builder
	body := ""
	method := plainMethods[c.choose(256)*c.choose(2)%len(plainMethods)]
	fmt.Fprintf(&r, "%s %s HTTP/1.1\r\n", method, plainTargets[c.choose(len(plainTargets))])
	host := "Host: " + plainHosts[c.choose(256)*c.choose(2)%len(plainHosts)] + "\r\n"
	at := c.choose(4)
	for i := range c.choose(6) {
		if i == at {
			r.WriteString(host)
			host = ""
		}
		r.WriteString(plainLines[c.choose(len(plainLines))] + "\r\n")
	}
	r.WriteString(host)
	if method != "GET" && method != "HEAD" || c.oneIn(16) {
		body = bodies[c.choose(len(bodies))]
		fmt.Fprintf(&r, "Content-Length: %d\r\n", len(body))
	}
	return r.String() + "\r\n" + body
}

// odd makes a request outside the strict subset, or bytes that may be none.
func (c *choices) odd(known []*conversation) string {
	switch text := c.plain(); c.choose(6) {
	case 0:
		return strings.Join(known[c.choose(len(known))].pieces, "")
	case 1:
		return c.text(64)
	case 2: // Other bytes in a plain request.
		at := c.choose(len(text))
		return text[:at] + c.text(8) + text[at:]
	case 3: // A byte less.
		at := c.choose(len(text))
		return text[:at] + text[at+1:]
	case 4: // A byte replaced by one with a meaning.
		const special = "\x00\t\n\r :;,/%?#\"@\x7f\xff0aA"
		at := c.choose(len(text))
		return text[:at] + special[c.choose(len(special)):][:1] + text[at+1:]
	default: // A line more.
		line, rest, _ := strings.Cut(text, "\r\n")
		return line + "\r\n" + oddLines[c.choose(len(oddLines))] + "\r\n" + rest
	}
}

// split cuts the bytes into pieces. Most conversations are one piece.
func (c *choices) split(sent string) (pieces []string) {
	if c.oneIn(4) {
		for range 1 + c.choose(3) {
			at := c.choose(len(sent) + 1)
			pieces, sent = append(pieces, sent[:at]), sent[at:]
		}
	}
	return append(pieces, sent)
}
