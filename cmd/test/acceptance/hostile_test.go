package acceptance

import (
	"slices"
	"strings"
	"testing"
)

const hostileConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: secret, match: {path: /secret/*}, key: [all], limits: ["0/s"]}
  - {name: client, match: {path: /limited/*}, key: [header:X-Client-Id, path], limits: ["1/1h"]}
  - {name: site, match: {path: /site}, key: [header:X-Client-Id, host], limits: ["1/1h"]}
  - {name: visitor, match: {path: /visit}, key: [header:X-Case, cookie:session], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  body_idle_timeout: 500ms
  upstream: "%s"
`

// last is the request that a test sends after an attack. On a surviving connection, the request
// is answered and the connection closes. Otherwise the request is part of the attack.
var last = request("GET /last HTTP/1.1", "Host: a", "Connection: close")

// talk sends bytes and then the last request. It gives the statuses of all answers, and the
// targets of all requests at the upstream.
func talk(t *testing.T, i *instance, behind *witness, sent string) (answers []int, reached []witnessed) {
	t.Helper()
	w := dial(t, "tcp", i.Proxy)
	w.send(sent + last)
	for got := w.answer(); got != nil; got = w.answer() {
		answers = append(answers, got.status)
	}
	w.Close()
	return answers, behind.take()
}

// smuggled is a request in the body of another request. A server that reads it as a request
// answers once more, and the upstream records it.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

func post(fields ...string) string {
	return request(append([]string{"POST /x HTTP/1.1", "Host: a"}, fields...)...)
}

// attack has the bytes to send and the expected results.
type attack struct {
	name, sent string
	answers    []int
	reached    []string // targets of complete requests at the upstream
	body       string   // of the first of these requests
}

// meet sends each attack, and compares the upstream's requests with those that a strict reader
// accepts. Afterwards the proxy has no goroutines of the attacks.
func meet(t *testing.T, attacks []attack) {
	t.Helper()
	behind := newWitness(t)
	i := start(t, hostileConfiguration, behind.url)
	idle := quietly(t, i, behind)
	for _, a := range attacks {
		answers, reached := talk(t, i, behind, a.sent)
		targets := []string{}
		for _, r := range reached {
			targets = append(targets, r.target)
		}
		// If a request is too large, the connection may be reset before its answer is read.
		lost := len(answers) == 0 && slices.Equal(a.answers, []int{431})
		if !lost && !slices.Equal(answers, a.answers) || !slices.Equal(targets, a.reached) {
			t.Errorf("%s: answers %v and %q at the upstream, want %v and %q", a.name, answers, targets, a.answers, a.reached)
		} else if len(reached) > 0 && reached[0].body != a.body {
			t.Errorf("%s: the upstream reads %q, want %q", a.name, reached[0].body, a.body)
		}
	}
	settles(t, i, behind, idle)
}

const (
	chunked = "Transfer-Encoding: chunked"
	length  = "Content-Length: 35" // the length of smuggled
)

// TestSmuggling sends requests with ends on which servers disagree. Each is refused and its
// connection closed, or has the same meaning for the proxy and the upstream.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	const x, end = "/x", "/last"
	meet(t, []attack{
		{"a length", post("Content-Length: 5") + "hello", []int{200, 200}, []string{x, end}, "hello"},
		{"a length that covers a request", post(length) + smuggled, []int{200, 200}, []string{x, end}, smuggled},
		{"the same length twice", post("Content-Length: 5", "Content-Length: 5") + "hello", []int{200, 200}, []string{x, end}, "hello"},
		{"spaces around a length", post("Content-Length:   5  ") + "hello", []int{200, 200}, []string{x, end}, "hello"},
		{"zeros before a length", post("Content-Length: 0000000005") + "hello", []int{200, 200}, []string{x, end}, "hello"},
		{"two lengths", post("Content-Length: 5", length) + "hello" + smuggled, []int{400}, nil, ""},
		{"a list of lengths", post("Content-Length: 5, 5") + "hello", []int{400}, nil, ""},
		{"a length with a sign", post("Content-Length: +5") + "hello", []int{400}, nil, ""},
		{"a negative length", post("Content-Length: -5") + "hello", []int{400}, nil, ""},
		{"a space in a length", post("Content-Length: 4 2") + "hello", []int{400}, nil, ""},
		{"a hexadecimal length", post("Content-Length: 0x5") + "hello", []int{400}, nil, ""},
		{"a length with an underscore", post("Content-Length: 0_5") + "hello", []int{400}, nil, ""},
		{"a length with a point", post("Content-Length: 5.0") + "hello", []int{400}, nil, ""},
		{"a length without end", post("Content-Length: 99999999999999999999") + "hello", []int{400}, nil, ""},
		{"a length above all numbers", post("Content-Length: 9223372036854775808") + "hello", []int{400}, nil, ""},
		{"NUL in a length", post("Content-Length: 5\x00") + "hello", []int{400}, nil, ""},
		{"a folded length", post("Content-Length: 5\r\n 0") + "hello", []int{400}, nil, ""},
		{"an empty length", post("Content-Length:") + smuggled, []int{400}, nil, ""},
		{"a space before the colon of a length", post("Content-Length : 5") + "hello", []int{400}, nil, ""},
		{"chunks", post(chunked) + "5\r\nhello\r\n0\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"chunked in other letters", post("Transfer-Encoding:\tcHuNkEd") + "5\r\nhello\r\n0\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"chunked on the next line", post("Transfer-Encoding:\r\n chunked") + "5\r\nhello\r\n0\r\n\r\n", []int{400}, nil, ""},
		{"a length and chunks", post("Content-Length: 4", chunked) + "1\r\nZ\r\n0\r\n\r\n", []int{400}, nil, ""},
		{"a length that ends within the chunks", post(chunked, "Content-Length: 4") + "1\r\nZ\r\n0\r\n\r\n", []int{400}, nil, ""},
		{"chunked twice", post(chunked, chunked) + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"gzip and chunked", post("Transfer-Encoding: gzip, chunked") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"chunked and identity", post("Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"identity", post("Transfer-Encoding: identity") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"no such coding", post("Transfer-Encoding: xchunked") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"quotes around chunked", post("Transfer-Encoding: \"chunked\"") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"a parameter of chunked", post("Transfer-Encoding: chunked;q=1") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"a comma after chunked", post("Transfer-Encoding: chunked,") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"an empty coding", post("Transfer-Encoding: ") + "0\r\n\r\n" + smuggled, []int{501}, nil, ""},
		{"an empty coding beside a length", post("Transfer-Encoding:", "Content-Length: 5") + "hello", []int{501}, nil, ""},
		{"a space before the colon of chunked", post("Transfer-Encoding : chunked") + "0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a vertical tab before chunked", post("Transfer-Encoding:\x0bchunked") + "0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a name that is not the coding's", post("Transfer_Encoding: chunked", "Content-Length: 5") + "hello", []int{200, 200}, []string{x, end}, "hello"},
		{"HTTP/1.0 knows no chunks", request("POST /x HTTP/1.0", "Host: a", chunked) + "0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a length that is the connection's", post("Connection: Content-Length", length) + smuggled, []int{200, 200}, []string{x, end}, smuggled},
		{"chunks that are the connection's", post("Connection: Transfer-Encoding", chunked) + "5\r\nhello\r\n0\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"extensions of chunks are dropped", post(chunked) + "5;name=value\r\nhello\r\n0;x\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"a space after a size", post(chunked) + "5 \r\nhello\r\n0\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"zeros before a size", post(chunked) + "000005\r\nhello\r\n000\r\n\r\n", []int{200, 200}, []string{x, end}, "hello"},
		{"a size in capitals", post(chunked) + "A\r\nhellohello\r\n0\r\n\r\n", []int{200, 200}, []string{x, end}, "hellohello"},
		{"a line feed ends an extension", post(chunked) + "5;\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a carriage return in an extension", post(chunked) + "5;a\rb\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"line feeds for line ends", post(chunked) + "5\nhello\n0\n\n" + smuggled, []int{400}, nil, ""},
		{"a line feed ends a chunk", post(chunked) + "5\r\nhello\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"nothing ends a chunk", post(chunked) + "5\r\nhello0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a chunk longer than its size", post(chunked) + "3\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a hexadecimal sign", post(chunked) + "0x5\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a size with a sign", post(chunked) + "+5\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a negative size", post(chunked) + "-5\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a space before a size", post(chunked) + " 5\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"no size", post(chunked) + "\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a word for a size", post(chunked) + "ZZ\r\n" + smuggled, []int{400}, nil, ""},
		{"a size of 17 digits", post(chunked) + "ffffffffffffffff1\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a size beyond 64 bits", post(chunked) + "10000000000000005\r\nhello\r\n0\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"an extension without end", post(chunked) + "5;" + strings.Repeat("x", 10000) + "\r\nhello\r\n0\r\n\r\n", []int{400}, nil, ""},
		{"more extensions than chunks", post(chunked) + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 100) + "0\r\n\r\n", []int{400}, nil, ""},
		{"a trailer of a length", post(chunked, "Trailer: Content-Length") + "5\r\nhello\r\n0\r\nContent-Length: 1\r\n\r\n", []int{400}, nil, ""},
		{"a trailer that is none", post(chunked) + "5\r\nhello\r\n0\r\nno field\r\n\r\n" + smuggled, []int{400}, nil, ""},
		{"a body of GET", request("GET /x HTTP/1.1", "Host: a", length) + smuggled, []int{200, 200}, []string{x, end}, smuggled},
		{"a refused length", request("POST /secret/x HTTP/1.1", "Host: a", length) + smuggled, []int{429, 200}, []string{end}, ""},
		{"refused chunks", request("POST /secret/x HTTP/1.1", "Host: a", chunked) + "23\r\n" + smuggled + "\r\n0\r\n\r\n", []int{429, 200}, []string{end}, ""},
		{"refused chunks that are none", request("POST /secret/x HTTP/1.1", "Host: a", chunked) + "ZZ\r\n" + smuggled, []int{429}, nil, ""},
		{"a refused body that is too long to read over", request("POST /secret/x HTTP/1.1", "Host: a", "Content-Length: 1000000") + strings.Repeat(smuggled, 1000), []int{429}, nil, ""},
		{"a body that is not wanted", post("Expect: 200-ok", "Content-Length: 5") + "hello", []int{417}, nil, ""},
	})
}

// TestMalformed sends malformed headers. Each is refused, or forwarded in the form of the
// standard.
func TestMalformed(t *testing.T) {
	t.Parallel()
	const x, end = "/x", "/last"
	meet(t, []attack{
		{"a folded field", request("GET /x HTTP/1.1", "Host: a", "X: b\r\n c\r\n\td"), []int{400}, nil, ""},
		{"a field of nothing but a fold", request("GET /x HTTP/1.1", "Host: a", "X:\r\n "), []int{400}, nil, ""},
		{"a fold before any field", request("GET /x HTTP/1.1", " X: b", "Host: a"), []int{400}, nil, ""},
		{"a carriage return in a field", request("GET /x HTTP/1.1", "Host: a", "X: a\rY: b"), []int{400}, nil, ""},
		{"two carriage returns", "GET /x HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n", []int{400}, nil, ""},
		{"carriage returns for line ends", "GET /x HTTP/1.1\rHost: a\r\r", []int{400}, nil, ""},
		{"line feeds for line ends", "GET /x HTTP/1.1\nHost: a\n\n", []int{200, 200}, []string{x, end}, ""},
		{"a line feed before a length", "POST /x HTTP/1.1\r\nHost: a\r\nX: a\n" + length + "\r\n\r\n" + smuggled, []int{200, 200}, []string{x, end}, smuggled},
		{"NUL in a value", request("GET /x HTTP/1.1", "Host: a", "X: a\x00b"), []int{400}, nil, ""},
		{"NUL in a name", request("GET /x HTTP/1.1", "Host: a", "X\x00: a"), []int{400}, nil, ""},
		{"escape in a value", request("GET /x HTTP/1.1", "Host: a", "X: a\x1b[2Jb"), []int{400}, nil, ""},
		{"a space in a name", request("GET /x HTTP/1.1", "Host: a", "X Y: a"), []int{400}, nil, ""},
		{"a space after a name", request("GET /x HTTP/1.1", "Host: a", "X : a"), []int{400}, nil, ""},
		{"no colon", request("GET /x HTTP/1.1", "Host: a", "nonsense"), []int{400}, nil, ""},
		{"no name", request("GET /x HTTP/1.1", "Host: a", ": a"), []int{400}, nil, ""},
		{"letters beyond ASCII in a name", request("GET /x HTTP/1.1", "Host: a", "Größe: a"), []int{400}, nil, ""},
		{"brackets in a name", request("GET /x HTTP/1.1", "Host: a", "X(): a"), []int{400}, nil, ""},
		{"letters beyond ASCII in a value", request("GET /x HTTP/1.1", "Host: a", "X: größe\xff"), []int{200, 200}, []string{x, end}, ""},
		{"empty lines before a request", "\r\n\r\n" + request("GET /x HTTP/1.1", "Host: a", "X: a"), []int{400}, nil, ""},
		{"two spaces", request("GET  /x HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"tabs for spaces", request("GET\t/x\tHTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"a space at the end", request("GET /x HTTP/1.1 ", "Host: a"), []int{400}, nil, ""},
		{"a version in small letters", request("GET /x http/1.1", "Host: a"), []int{400}, nil, ""},
		{"a version of three parts", request("GET /x HTTP/1.1.1", "Host: a"), []int{400}, nil, ""},
		{"a bracket in a method", request("G(T /x HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"no method", request(" /x HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"no target", request("GET HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"NUL in a target", request("GET /\x00 HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"DEL in a target", request("GET /\x7f HTTP/1.1", "Host: a"), []int{400}, nil, ""},
		{"HTTP/0.9", "GET /x\r\n", []int{400}, nil, ""},
		{"HTTP/1.0", request("GET /x HTTP/1.0"), []int{200}, []string{x}, ""},
		{"HTTP/1.0 that goes on", request("GET /x HTTP/1.0", "Connection: keep-alive"), []int{200, 200}, []string{x, end}, ""},
		{"HTTP/1.2", request("GET /x HTTP/1.2", "Host: a"), []int{200, 200}, []string{x, end}, ""},
		{"HTTP/2.0 in words", request("GET /x HTTP/2.0", "Host: a"), []int{505}, nil, ""},
		{"the preface of HTTP/2, late", request("GET /x HTTP/1.1", "Host: a", "X: a") + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{200, 400}, []string{x}, ""},
		{"a method in small letters", request("get /x HTTP/1.1", "Host: a"), []int{200, 200}, []string{x, end}, ""},
		{"a method that nobody knows", request("BREW-IT /x HTTP/1.1", "Host: a"), []int{200, 200}, []string{x, end}, ""},
		{"CONNECT", request("CONNECT a:443 HTTP/1.1", "Host: a:443"), []int{405, 200}, []string{end}, ""},
		{"CONNECT with a path", request("CONNECT /x HTTP/1.1", "Host: a"), []int{405, 200}, []string{end}, ""},
		{"no host", request("GET /x HTTP/1.1"), []int{400}, nil, ""},
		{"two hosts", request("GET /x HTTP/1.1", "Host: a", "Host: b"), []int{400}, nil, ""},
		{"an empty host", request("GET /x HTTP/1.1", "Host:"), []int{200, 200}, []string{x, end}, ""},
		{"a host that is the connection's", request("GET /x HTTP/1.1", "Host: a", "Connection: Host"), []int{200, 200}, []string{x, end}, ""},
		{"a slash in a host", request("GET /x HTTP/1.1", "Host: a/b"), []int{400}, nil, ""},
		{"a user in a host", request("GET /x HTTP/1.1", "Host: u@a"), []int{400}, nil, ""},
		{"a space in a host", request("GET /x HTTP/1.1", "Host: a b"), []int{400}, nil, ""},
		{"a megabyte in one field", request("GET /x HTTP/1.1", "Host: a", "X: "+strings.Repeat("x", 1<<20)), []int{431}, nil, ""},
		{"a megabyte in small fields", "GET /x HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 1<<18) + "\r\n", []int{431}, nil, ""},
		{"a megabyte of method", strings.Repeat("G", 1<<20) + " /x HTTP/1.1\r\nHost: a\r\n\r\n", []int{431}, nil, ""},
		{"a megabyte of target", "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n", []int{431}, nil, ""},
	})
}
