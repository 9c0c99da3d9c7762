package proxy

import (
	"fmt"
	"slices"
	"strings"
)

func syntaxCorpus() []*conversation {
	return slices.Concat(
		each("GET /syntax HTTP/1.1\r\nHost: a.example\r\n%s\r\n\r\n"+plainRequest,
			"X: 1", "X:1", "X:  1", "X: 1 ", "X: 1\t", "X:\t1", "X:", "X: ", ": 1", ":", "X", "X 1", " X: 1", "\tX: 1", "X : 1", "X\t: 1", "X Y: 1", "X: 1\r\n 2", "X: 1\r\n\t2", "X: 1\r\n ", "X:\r\n 1", "X: 1\r\n 2\r\n 3",
			"X: a\x00b", "X: \x00", "X\x00: 1", "X: a\rb", "X: a\r", "X: \r1", "X\r: 1", "X: a\nb", "X: a\nY: b", "X: a\n b", "X: 1\n", "X: 1\n\nY: 2", "X: a\x01b", "X: a\x7fb", "X: a\x1bb", "X: a\vb", "X: a\fb", "X: é", "X: \xff\xfe",
			"é: 1", "X\xff: 1", "X(Y): 1", "X,Y: 1", "X/Y: 1", "X;Y: 1", "X=Y: 1", "X@Y: 1", "X[Y]: 1", "X\"Y\": 1", "X!#$%&'*+-.^_`|~: 1", "x_y: 1", "X.Y: 1", "X: a:b", "X:: 1", "X: \"a\r\n b\"",
			"X: 1\r\nX: 2", "X: 1\r\nx: 2\r\nX: 3", "X: 1, 2\r\nX: 3", "X: 1\r\nY: 2\r\nX: 3", "X: \r\nX: 1", "X: ,", "\r", "\r\r", "X: 1\r\r\nY: 2", "X: 1\r\n\rY: 2", "X: 1\r\n\r\r\nY: 2"), //nolint:dupword // because the bytes repeat a word.
		each("%s", "GET /lf HTTP/1.1\nHost: a.example\nX: 1\n\n"+plainRequest, "GET /lf HTTP/1.1\r\nHost: a.example\n\r\n"+plainRequest, "GET /lf HTTP/1.1\nHost: a.example\r\n\r\n"+plainRequest,
			"GET /cr HTTP/1.1\rHost: a.example\r\r", "GET /lf HTTP/1.1\r\nHost: a.example\r\n\n"+plainRequest, "GET /lf HTTP/1.1\r\nHost: a.example\n\n"+plainRequest, "GET /lf HTTP/1.1\r\n\nHost: a.example\r\n\r\n",
			"GET /lf HTTP/1.1\r\nHost: a.example\r\n\r\n\r\n"+plainRequest, "GET /lf HTTP/1.1\r\nHost: a.example\r\n\r\n\n"+plainRequest, "POST /lf HTTP/1.1\nHost: a.example\nContent-Length: 3\n\nabc"+plainRequest,
			"GET /x HTTP/1.1\r\n Host: a.example\r\n\r\n", "GET /x HTTP/1.1\r\n\tX: 1\r\nHost: a.example\r\n\r\n", "GET /x HTTP/1.1\r\n: a\r\nHost: a.example\r\n\r\n"),
	)
}

func fieldCorpus() []*conversation {
	return slices.Concat(
		each("GET /cookie/x HTTP/1.1\r\nHost: a.example\r\nCookie: %s\r\n\r\n"+plainRequest, folded(differentialCookies, "Cookie")...),
		each("GET /key HTTP/1.1\r\nHost: a.example\r\nX-Api-Key: %s\r\n\r\n"+plainRequest, folded(differentialKeys, "X-Api-Key")...),
		each("GET /fields HTTP/1.1\r\nHost: a.example\r\n%s\r\n\r\n"+plainRequest,
			"Accept: */*\r\nAccept-Encoding: gzip, br\r\nAccept-Language: nl\r\nUser-Agent: x y/1.0\r\nReferer: http://b/c", "User-Agent:", "User-Agent: a\r\nUser-Agent: b", "Accept: a\r\nAccept: b\r\nACCEPT: c",
			"X_Api_Key: forged", "X-Api_Key: forged\r\nX-Api-Key: k", "X-API-KEY: k", "x-api-key: k", "X.Api.Key: forged", "Authorization: Basic YTpi", "If-None-Match: \"x\"", "Range: bytes=0-1", "Content-Type: text/plain",
			"Content-Encoding: gzip", "Max-Forwards: 0", "Via: 1.1 x", "Forwarded: for=b", "Keep-Alive: 5", "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic x", "Proxy-Authenticate: x", "Te: trailers", "TE: gzip",
			"TE: trailers, gzip", "Te:", "Trailer: X-Sum", "Trailer:", "Upgrade: websocket", "Upgrade: h2c", "Http2-Settings: AAMAAABkAAQAAP__", "Early-Data: 1", "Date: Mon, 01 Jan 2001 00:00:00 GMT", "Pragma: no-cache",
			"Cookie: a=1\r\nCookie: b=2", "Referer: \"quoted\"", "User-Agent: \"quoted\\\" é", "Idempotency-Key: x", "X-Idempotency-Key: x", "Expect: x", "Sec-WebSocket-Key: x", "X-Forwarded-For: 1.2.3.4"),
	)
}

// folded puts each value of a name on a line of its own.
func folded(values []string, name string) (lines []string) {
	for _, v := range values {
		lines = append(lines, strings.ReplaceAll(v, "\n", "\r\n"+name+": "))
	}
	return lines
}

func connectionCorpus() (all []*conversation) {
	options := []string{
		"close", "Close", "CLOSE", "keep-alive", "Keep-Alive", "KEEP-ALIVE", " close ", "close,", ",close", ",", "", "close, keep-alive", "keep-alive, close", "keep-alive,close", "close\r\nConnection: keep-alive",
		"keep-alive\r\nConnection: close", "close\r\nConnection: close", "x-api-key", "X-Api-Key, close", "X-Hop", "x-hop, keep-alive", "Host", "Content-Length", "Transfer-Encoding", "Cookie", "X-Forwarded-For",
		"X-User-Ip", "X-Request-Id", "Headgate-Warning", "upgrade", "Upgrade, close", "TE", "te, close", "closed", "close;q=1", "\"close\"", "clo se", "close\t", "X Y", "é", "User-Agent, X-Api-Key", "Keep-Alive, X-Hop",
	}
	for _, format := range []string{
		"GET /connection HTTP/1.1\r\nHost: a.example\r\nX-Api-Key: k\r\nX-Hop: 1\r\nX-User-Ip: 1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nConnection: %s\r\n\r\n" + plainRequest,
		"GET /connection HTTP/1.0\r\nHost: a.example\r\nX-Hop: 1\r\nConnection: %s\r\n\r\n" + plainRequest,
		"POST /connection HTTP/1.1\r\nConnection: %s\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc" + plainRequest,
		"GET /denied/x HTTP/1.1\r\nHost: a.example\r\nConnection: %s\r\n\r\n" + plainRequest,
	} {
		all = append(all, each(format, options...)...)
	}
	return slices.Concat(all, each("GET "+upgradePath+" HTTP/1.1\r\nHost: a.example\r\nConnection: %s\r\n\r\nbytes of another protocol",
		"Upgrade\r\nUpgrade: websocket", "upgrade\r\nupgrade: WebSocket", "Upgrade, close\r\nUpgrade: websocket", "keep-alive, Upgrade\r\nUpgrade: websocket", "Upgrade\r\nUpgrade: h2c", "Upgrade\r\nUpgrade: websocket, h2c",
		"Upgrade\r\nUpgrade: websocket\r\nUpgrade: x", "Upgrade\r\nUpgrade: TLS/1.0", "Upgrade\r\nUpgrade: HTTP/2.0", "Upgrade", "Upgrade\r\nUpgrade:", "close\r\nUpgrade: websocket", "Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__"),
		each("GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"+plainRequest, "websocket", "h2c"))
}

func expectCorpus() (all []*conversation) {
	for _, value := range []string{"100-continue", "100-Continue", "100-CONTINUE", "100-continue, x", "x", "", "200-ok", "100-continue\r\nExpect: 100-continue"} {
		for _, path := range []string{"/x", "/denied/x", "/x/continue", "/x/missing"} {
			all = append(all,
				framed("POST "+path+" HTTP/1.1", "Expect: "+value+"\r\nContent-Length: 3\r\n", "abc"+plainRequest),
				framed("GET "+path+" HTTP/1.1", "Expect: "+value+"\r\n", plainRequest))
		}
	}
	for _, rest := range []string{"abc", "ab", ""} {
		late := framed("POST /x HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 3\r\n", "")
		late.name, late.pieces = fmt.Sprintf("late body %q %s", rest, late.name), append(late.pieces, rest)
		all = append(all, late)
	}
	return append(all, framed("POST /x HTTP/1.0", "Expect: 100-continue\r\nContent-Length: 3\r\n", "abc"), framed("POST /x HTTP/1.1", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"+plainRequest))
}
