package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// upstreamAnswer is what an upstream sends for one request.
type upstreamAnswer struct {
	name   string
	pieces []string // sent one after another
	then   after
}

// after says what the upstream does after the last piece.
type after uint8

const (
	thenKeep  after = iota // serve further requests on the connection
	thenClose              // close the connection
	thenReset              // reset the connection
	afters
)

// splitAt returns a with its bytes in two pieces.
func (a *upstreamAnswer) splitAt(i int) *upstreamAnswer {
	sent := strings.Join(a.pieces, "")
	split := *a
	split.pieces = []string{sent[:i], sent[i:]}
	return &split
}

// answering is an upstream that sends one scripted answer. It answers all other requests by the
// recorder's rules.
type answering struct {
	next atomic.Pointer[upstreamAnswer]
}

// serve serves one connection from the proxy.
func (u *answering) serve(conn net.Conn) {
	var unread []byte
	buf := make([]byte, 4<<10)
	for {
		m, rest := parseRequest(unread)
		switch {
		case m.fault != "":
			return
		case !m.whole:
			n, err := conn.Read(buf)
			if unread = append(unread, buf[:n]...); err != nil {
				return
			}
			continue
		}
		unread = rest
		a := u.next.Swap(nil)
		if a == nil && respond(conn, &m) || a != nil && a.send(conn) {
			continue
		}
		return
	}
}

// send sends the answer. It returns true if the connection continues.
func (a *upstreamAnswer) send(conn net.Conn) bool {
	for _, piece := range a.pieces {
		_, _ = conn.Write([]byte(piece))
		time.Sleep(time.Millisecond) //nolint:forbidigo // In a bubble: the proxy reads each piece on its own.
	}
	if a.then == thenReset {
		conn.(*memoryConn).Abort()
	}
	return a.then == thenKeep
}

// answered are the answers that the tests send, with every end of the connection.
func answered() (all []*upstreamAnswer) {
	for _, text := range answerTexts() {
		for then := range afters {
			all = append(all, &upstreamAnswer{fmt.Sprintf("%.100q, then %d", text, then), []string{text}, then})
		}
		all = append(all, &upstreamAnswer{fmt.Sprintf("%.100q, then late bytes", text), []string{text, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"}, thenKeep})
	}
	return all
}

// answerTexts returns the bytes of answers. All their bodies have the word first, which no
// client but the first may receive.
func answerTexts() []string {
	const head = "HTTP/1.1 200 OK\r\n"
	texts := []string{"", "\r\n", "first", "\r\n" + head + "Content-Length: 5\r\n\r\nfirst", head, head + "\r\nfirst", head + "X: first"}
	for _, status := range []string{
		"HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1  200 OK", "HTTP/1.1 200 O\x00K", "HTTP/1.1 99 X", "HTTP/1.1 000 X", "HTTP/1.1 1000 X", "HTTP/1.1 abc X", "HTTP/1.1 20 X", "HTTP/1.0 200 OK", "HTTP/2.0 200 OK",
		"HTTP/1.2 200 OK", "HTTP/0.9 200 OK", "http/1.1 200 OK", "ICY 200 OK", "HTTP/1.1", "HTTP/1.1 -200 OK", "HTTP/1.1 +200 OK", "HTTP/1.1 2OO OK", " HTTP/1.1 200 OK", "HTTP/1.1\t200\tOK", "HTTP/1.1 204 X", "HTTP/1.1 205 X",
		"HTTP/1.1 304 X", "HTTP/1.1 101 X", "HTTP/1.1 100 X", "HTTP/1.1 103 X", "HTTP/1.1 199 X", "HTTP/1.1 500 X", "HTTP/1.1 799 X", "HTTP/1.1 999 X",
	} {
		texts = append(texts, status+"\r\nContent-Length: 5\r\n\r\nfirst")
	}
	for _, fields := range []string{
		"Content-Length: 5\r\n\r\nfirst", "Content-Length: 0\r\n\r\n", "Content-Length: 9\r\n\r\nfirst", "Content-Length: 3\r\n\r\nfirst", "Content-Length: 0\r\n\r\nfirst", "content-length:5\r\n\r\nfirst", "Content-Length: 05\r\n\r\nfirst",
		"Content-Length: 5\r\n\r\nfirstHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst", "Content-Length: 5\r\nContent-Length: 5\r\n\r\nfirst", "Content-Length: 5\r\nContent-Length: 6\r\n\r\nfirst", "Content-Length: 5, 5\r\n\r\nfirst",
		"Content-Length: -5\r\n\r\nfirst", "Content-Length: +5\r\n\r\nfirst", "Content-Length: x\r\n\r\nfirst", "Content-Length: \r\n\r\nfirst", "Content-Length: 99999999999999999999\r\n\r\nfirst", "Content-Length : 5\r\n\r\nfirst",
		"Content-Length: 5 \r\n\r\nfirst", "Content-Length:\r\n 5\r\n\r\nfirst", "Content-Length: 5\nX: y\r\n\r\nfirst", "Content-Length: 5\n\nfirst",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n", "Transfer-Encoding: Chunked\r\n\r\n2\r\nfi\r\n3;x=y\r\nrst\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nfir",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nfirstX\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nfirst", "Transfer-Encoding: chunked\r\n\r\n5\nfirst\n0\n\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nfirst",
		"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nfirst\r\n0\r\nX-Sum: 1\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\nX-Sum: 1\r\nX-Late: first\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\nX-Sum: 1",
		"Transfer-Encoding: chunked\r\nTrailer: X-Request-Id, Content-Length\r\n\r\n5\r\nfirst\r\n0\r\nX-Request-Id: 1\r\nContent-Length: 3\r\n\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
		"Transfer-Encoding: gzip\r\n\r\nfirst", "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nfirst", "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\nd\r\ndata: first\n\n\r\n0\r\n\r\n", "Content-Type: text/event-stream\r\n\r\ndata: first\n\n",
		"Connection: close\r\nContent-Length: 5\r\n\r\nfirst", "Connection: Close\r\nContent-Length: 9\r\n\r\nfirst", "Connection: keep-alive, close\r\nContent-Length: 5\r\n\r\nfirst", "Connection: X-Gone\r\nX-Gone: 1\r\nContent-Length: 5\r\n\r\nfirst",
		"Connection: keep-alive\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfirst", "X: 1\r\n folded\r\nContent-Length: 5\r\n\r\nfirst", " X: 1\r\nContent-Length: 5\r\n\r\nfirst", "X : 1\r\nContent-Length: 5\r\n\r\nfirst",
		"X\r\nContent-Length: 5\r\n\r\nfirst", ": 1\r\nContent-Length: 5\r\n\r\nfirst", "X: a\x00b\r\nContent-Length: 5\r\n\r\nfirst", "X: a\rb\r\nContent-Length: 5\r\n\r\nfirst", "X: \xff\r\nContent-Length: 5\r\n\r\nfirst", "é: 1\r\nContent-Length: 5\r\n\r\nfirst",
		"X: 1\r\nx: 2\r\nX: 3\r\nContent-Length: 5\r\n\r\nfirst", "X:\r\nX: \r\nContent-Length: 5\r\n\r\nfirst", "Set-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\nfirst", "Upgrade: h2c\r\nContent-Length: 5\r\n\r\nfirst", //nolint:dupword // because the bytes repeat a word.
		"Date:\r\nContent-Length: 5\r\n\r\nfirst", "Content-Type:\r\nContent-Length: 5\r\n\r\nfirst", "Trailer: X\r\nContent-Length: 5\r\n\r\nfirst", "Keep-Alive: timeout=0\r\nContent-Length: 5\r\n\r\nfirst",
	} {
		texts = append(texts, head+fields)
	}
	final := head + "Content-Length: 5\r\n\r\nfirst"
	hint := "HTTP/1.1 103 Early Hints\r\nLink: <first>\r\n\r\n"
	return append(texts, hint+final, hint+hint+final, "HTTP/1.1 100 Continue\r\n\r\n"+final, "HTTP/1.1 102 X\r\n\r\n"+hint, strings.Repeat("HTTP/1.1 103 X\r\n\r\n", 80)+final, strings.Repeat("HTTP/1.1 100 X\r\n\r\n", 80)+final,
		"HTTP/1.1 204 X\r\n\r\nfirst", "HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: first\r\n\r\nfirst", final+final, final+hint) //nolint:dupword // because the bytes repeat a word.
}

// TestPlanesAnswers sends the answers whole.
func TestPlanesAnswers(t *testing.T) {
	t.Parallel()
	silenceTransport()
	all := answered()
	sharded(t, func(t *testing.T, shard, shards int) {
		t.Helper()
		exchange := newAnswerPair(t)
		defer exchange.stop()
		for i := shard; i < len(all); i += shards * rarely() {
			exchange.check(t, all[i], "GET")
			exchange.check(t, all[i], "HEAD")
			exchange.check(t, all[i], "POST")
		}
	})
	t.Logf("%d answers", len(all))
}

// answerSplitStride is the distance between the offsets at which a quick test splits an answer.
const answerSplitStride = 23

// TestPlanesAnswerSplits sends the answers in two pieces.
func TestPlanesAnswerSplits(t *testing.T) { sendAnswerSplits(t, answerSplitStride) }

// sendAnswerSplits sends the answers in two pieces, split at each stride-th offset.
func sendAnswerSplits(t *testing.T, stride int) {
	t.Helper()
	silenceTransport()
	stride *= rarely()
	all := answered()
	sharded(t, func(t *testing.T, shard, shards int) {
		t.Helper()
		exchange := newAnswerPair(t)
		defer exchange.stop()
		for i := shard; i < len(all); i += shards {
			length := len(strings.Join(all[i].pieces, ""))
			for at := 1 + i%stride; at < length; at += stride + length/300 {
				exchange.check(t, all[i].splitAt(at), []string{"GET", "HEAD"}[at%2])
			}
		}
	})
}
