package proxy

import (
	"slices"
	"strings"
)

// lengthLines spell the length of the body hello in many ways.
var lengthLines = []string{
	"Content-Length: 5", "content-length: 5", "CONTENT-LENGTH: 5", "Content-Length:5", "Content-Length: 5 ", "Content-Length:\t5", "Content-Length: 05", "Content-Length: 0005", "Content-Length: +5",
	"Content-Length: -5", "Content-Length: 5,5", "Content-Length: 5, 5", "Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 6\r\nContent-Length: 5",
	"Content-Length: 0\r\nContent-Length: 5", "Content-Length: 5 5", "Content-Length: 0x5", "Content-Length: 5.0", "Content-Length: 5e0", "Content-Length: ", "Content-Length:", "Content-Length",
	"Content-Length : 5", "Content-Length\t: 5", " Content-Length: 5", "Content-Length: 5\x00", "Content-Length: \x005", "Content-Length: 5\v", "Content-Length: ５", "Content_Length: 5",
	"Content-Length: 5;x", "Content-Length: \"5\"", "X: 1\r\n Content-Length: 5", "Content-Length: 5\r\n", "Content-Length:\r\n 5", "Content-Length: 1\r\n 2", "Content-Length:  5  ", "Content-Length: five",
	"Content-Length: 99999999999999999999", "Content-Length: 9223372036854775807", "Content-Length: 9223372036854775808", "Content-Length: 18446744073709551616", "Content-Length: " + strings.Repeat("0", 70) + "5",
	"Content-Length: 5\r\nTransfer-Encoding: identity", "Content-Length: 5\nX: y", "Content-Length: 5\rX: y", "X-Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Type: text/plain",
}

// codingLines spell the coding of a body in many ways.
var codingLines = []string{
	"Transfer-Encoding: chunked", "transfer-encoding: chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: CHUNKED", "Transfer-Encoding:chunked", "Transfer-Encoding: chunked ",
	"Transfer-Encoding:\tchunked", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked", "Transfer-Encoding: \x00chunked", "Transfer-Encoding: chunked\x00",
	"Transfer-Encoding: \vchunked", "Transfer-Encoding: chunked\v", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: 'chunked'",
	"Transfer-Encoding: identity", "Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: chunked, identity",
	"Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
	"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "Transfer-Encoding: ", "Transfer-Encoding:", "Transfer-Encoding",
	"Transfer-Encoding: ,chunked", "Transfer-Encoding: chunked,", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: chun\r\n ked", "X: 1\r\n Transfer-Encoding: chunked",
	"Transfer_Encoding: chunked", "Transfer Encoding: chunked", "Transfer-Encoding\x00: chunked", "\x0bTransfer-Encoding: chunked", "X-Transfer-Encoding: chunked",
	"Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: 15\r\nTransfer-Encoding: chunked",
	"Content-Length: 15\r\nTransfer-Encoding: xchunked", "Content-Length: x\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6\r\nTransfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked",
	"X: y\rTransfer-Encoding: chunked", "Transfer-Encoding: chunked\nX: y", "Transfer-Encoding: chunked\rX: y", "Transfer-Encoding: chu nked", "TE: trailers\r\nTransfer-Encoding: chunked",
	"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nConnection: close", "Trailer: X-Sum\r\nTransfer-Encoding: chunked",
}

func lengthCorpus() []*conversation {
	all := each("POST /length HTTP/1.1\r\nHost: a.example\r\n%s\r\n\r\nhello"+plainRequest, lengthLines...)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "SEARCH"} {
		all = append(all,
			framed(method+" /body HTTP/1.1", "Content-Length: 0\r\n", plainRequest),
			framed(method+" /body HTTP/1.1", "Content-Length: 3\r\n", "abc"+plainRequest),
			framed(method+" /body HTTP/1.1", "Content-Length: 3\r\n", "ab"),
			framed(method+" /body HTTP/1.1", "Content-Length: 3\r\n", ""),
			framed(method+" /denied/x HTTP/1.1", "Content-Length: 3\r\n", "abc"+plainRequest),
		)
	}
	for _, path := range []string{"/denied/x", "/delayed/x", "/redirected/x", "/x%5cy", "/x/early", "/x/gone", "/x/eof", "/x/close", "/x/broken", "/x/cut"} {
		all = append(all,
			framed("POST "+path+" HTTP/1.1", "Content-Length: 5\r\n", "hel"),
			framed("POST "+path+" HTTP/1.1", "Content-Length: 5\r\nConnection: close\r\n", "hello"+plainRequest))
		if path != "/x/early" {
			all = append(all, framed("POST "+path+" HTTP/1.1", "Content-Length: 5\r\n", "hello"+plainRequest))
		}
	}
	large := strings.Repeat("0123456789", 2000)
	all = append(all, framed("POST /large HTTP/1.1", "Content-Length: 20000\r\n", large+plainRequest),
		framed("POST /denied/large HTTP/1.1", "Content-Length: 20000\r\n", large+plainRequest), framed("POST /large HTTP/1.1", "Content-Length: 20001\r\n", large))
	silent := framed("POST /silent HTTP/1.1", "Content-Length: 5\r\n", "hel")
	silent.name, silent.ending = "silent "+silent.name, endSilence
	reset := framed("POST /reset HTTP/1.1", "Content-Length: 5\r\n", "hel")
	reset.name, reset.ending = "reset "+reset.name, endReset
	return append(all, silent, reset)
}

func codingCorpus() []*conversation {
	return slices.Concat(
		each("POST /coding HTTP/1.1\r\nHost: a.example\r\n%s\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+plainRequest, codingLines...),
		each("POST /coding HTTP/1.0\r\nHost: a.example\r\n%s\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+plainRequest,
			"Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nConnection: keep-alive", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive"),
		each("%s", "GET /coding HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+plainRequest, "HEAD /coding HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"+plainRequest,
			"POST /denied/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"+plainRequest, "POST /denied/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"),
	)
}

func chunkCorpus() []*conversation {
	return slices.Concat(
		each("POST /chunk HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n%s"+plainRequest,
			"0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", "3;x=y\r\nabc\r\n0\r\n\r\n", "3;\r\nabc\r\n0\r\n\r\n", "3 ;x\r\nabc\r\n0\r\n\r\n", "3;x=\"a\r\nb\"\r\nabc\r\n0\r\n\r\n", "3;x\nabc\r\n0\r\n\r\n",
			"3\nabc\n0\n\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "03\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n",
			"3 \r\nabc\r\n0\r\n\r\n", "3\t\r\nabc\r\n0\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n", "a\r\n0123456789\r\n0\r\n\r\n", "A\r\n0123456789\r\n00\r\n\r\n", "g\r\nabc\r\n0\r\n\r\n", "ffffffffffffffff\r\nabc\r\n0\r\n\r\n",
			"10000000000000003\r\nabc\r\n0\r\n\r\n", "00000000000000003\r\nabc\r\n0\r\n\r\n", "000000000000000000000000000003\r\nabc\r\n0\r\n\r\n", "\r\n", "3\rabc\r\n0\r\n\r\n", "3\r\nabc\r0\r\n\r\n", "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
			"3\r\nabc\r\n0;last\r\n\r\n", "0\r\nX-Sum: 1\r\n 2\r\n\r\n", "0\r\n X: y\r\n\r\n", "0\r\nX : y\r\n\r\n", "0\r\nX\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\nHost: b\r\n\r\n",
			"0\r\nX-Api-Key: forged\r\n\r\n", "0\n\r\n", "0\r\n\n", "0\n\n", "0\r\r\n\r\n", "3;"+strings.Repeat("x", 5000)+"\r\nabc\r\n0\r\n\r\n", "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"),
		each("POST /chunk HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n%s", "3\r\nab", "3\r\nabc", "3\r\nabc\r\n", "3\r\nabc\r\n0", "3\r\nabc\r\n0\r\n", "3", ""),
		each("POST /trailer HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTrailer: %s\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Api-Key: forged\r\nX-Late: 2\r\n\r\n"+plainRequest,
			"X-Sum", "x-sum", "X-Sum, X-Late", "X-Sum,X-Api-Key", "Content-Length", "Transfer-Encoding", "Host", "X-Forwarded-For", "", "X Sum", "X-Request-Id", "X-Sum\r\nTrailer: X-Late", "X_Api_Key"),
	)
}
