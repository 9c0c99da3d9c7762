package proxy

import (
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"sync"
)

// recorder is the upstream of a plane. It records each request, reads it to its end, and
// answers by the last word of its path.
type recorder struct {
	mu       sync.Mutex
	requests []wireMessage
	conns    map[net.Conn]struct{}
	serving  sync.WaitGroup
	// script serves a connection in place of the rules; nil means the rules.
	script func(net.Conn)
}

// serve accepts connections until ln is closed.
func (r *recorder) serve(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.conns == nil {
			r.conns = map[net.Conn]struct{}{}
		}
		r.conns[conn] = struct{}{}
		r.mu.Unlock()
		r.serving.Go(func() {
			defer r.forget(conn)
			if r.script != nil {
				r.script(conn)
				return
			}
			r.answer(conn)
		})
	}
}

func (r *recorder) forget(conn net.Conn) {
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// stop closes all connections and waits for their goroutines.
func (r *recorder) stop() {
	r.mu.Lock()
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.serving.Wait()
}

func (r *recorder) record(m wireMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, m)
}

// recorded returns the number of requests since the last call of take.
func (r *recorder) recorded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// take returns the requests since the last call.
func (r *recorder) take() []wireMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// answer reads and answers the requests of one connection.
func (r *recorder) answer(conn net.Conn) {
	var unread []byte
	buf := make([]byte, 16<<10)
	early := false // The request at the start of unread has been answered.
	for {
		m, rest := parseRequest(unread)
		if m.whole || m.fault != "" {
			r.record(m)
			if m.fault != "" {
				return
			}
			if !early && !respond(conn, &m) {
				return
			}
			if m.word(1) == upgradePath && len(m.values("upgrade")) > 0 {
				echo(conn, rest, buf)
				return
			}
			unread, early = rest, false
			continue
		}
		if !early && m.fields != nil && strings.HasSuffix(m.word(1), "/early") {
			early = true
			respond(conn, &m)
		}
		n, err := conn.Read(buf)
		unread = append(unread, buf[:n]...)
		if err != nil {
			if len(unread) > 0 {
				r.record(m)
			}
			return
		}
	}
}

// upgradePath is the target whose upgrades the recorder accepts.
const upgradePath = "/upgrade"

// echo returns the bytes of an upgraded connection to their sender.
func echo(conn net.Conn, first, buf []byte) {
	_, _ = conn.Write(first)
	for {
		n, err := conn.Read(buf)
		_, _ = conn.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// replyTable has the answers by the last segment of the path. TOKEN stands for a hash of the
// request, and LENGTH for the length of the body. An answer without LENGTH or a coding ends
// with the connection.
var replyTable = map[string]string{
	"many": "HTTP/1.1 200 Fine\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-Up: 1\r\nX-UP: 2\r\nx_up: 3\r\nVary: *\r\nX-Empty:\r\nLENGTH\r\n\r\nTOKEN",
	"hop": "HTTP/1.1 200 OK\r\nConnection: X-Gone, keep-alive\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\n" +
		"Upgrade: h2c\r\nLENGTH\r\n\r\nTOKEN",
	"limits":   "HTTP/1.1 200 OK\r\nRateLimit: \"theirs\";r=1;t=2\r\nRateLimit-Policy: \"theirs\";q=9;w=1\r\nRetry-After: 3\r\nLENGTH\r\n\r\nTOKEN",
	"own":      "HTTP/1.1 200 OK\r\nX-Request-Id: theirs\r\nHeadgate-Warning: theirs\r\nDate: Mon, 01 Jan 2001 00:00:00 GMT\r\nServer: s\r\nLENGTH\r\n\r\nTOKEN",
	"close":    "HTTP/1.1 200 OK\r\nConnection: close\r\nLENGTH\r\n\r\nTOKEN",
	"eof":      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nTOKEN",
	"old":      "HTTP/1.0 200 OK\r\nLENGTH\r\n\r\nTOKEN",
	"chunked":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\nTOKEN\r\n0\r\n\r\n",
	"trailer":  "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nTOKEN\r\n0\r\nX-Sum: 1\r\n\r\n",
	"event":    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n17\r\ndata: TOKEN\n\r\n0\r\n\r\n",
	"hints":    "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nLENGTH\r\n\r\nTOKEN",
	"continue": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nLENGTH\r\n\r\nTOKEN",
	"none":     "HTTP/1.1 204 No Content\r\nX-Token: TOKEN\r\n\r\n",
	"same":     "HTTP/1.1 304 Not Modified\r\nETag: \"TOKEN\"\r\nContent-Length: 16\r\n\r\n",
	"empty":    "HTTP/1.1 200 OK\r\nX-Token: TOKEN\r\nContent-Length: 0\r\n\r\n",
	"moved":    "HTTP/1.1 301 Moved Permanently\r\nLocation: http://a/b\r\nLENGTH\r\n\r\nTOKEN",
	"missing":  "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nLENGTH\r\n\r\n<p>TOKEN",
	"busy":     "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nLENGTH\r\n\r\nTOKEN",
	"odd":      "HTTP/1.1 799 \r\nLENGTH\r\n\r\nTOKEN",
	"typed":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nLENGTH\r\n\r\n{\"t\":\"TOKEN\"}",
	"html":     "HTTP/1.1 200 OK\r\nLENGTH\r\n\r\n<!doctype html>TOKEN",
	"large":    "HTTP/1.1 200 OK\r\nLENGTH\r\n\r\nTOKEN" + strings.Repeat("0123456789abcdef", 5000),
	"early":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly",
	"broken":   "HTTP/1.1 200 OK\r\nContent Length: 5\r\n\r\nhello",
	"cut":      "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
	"gone":     "",
}

// respond answers a request. It returns false if the connection ends with the answer.
func respond(conn net.Conn, m *wireMessage) (next bool) {
	path, _, _ := strings.Cut(m.word(1), "?")
	name := path[strings.LastIndexByte(path, '/')+1:]
	text, found := replyTable[name]
	if path == upgradePath && len(m.values("upgrade")) > 0 {
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", m.values("upgrade")[0])
		return true
	}
	if !found {
		text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nLENGTH\r\n\r\nTOKEN"
	}
	text = strings.ReplaceAll(text, "TOKEN", token(m))
	if interim, final, found := strings.Cut(text, "\r\n\r\nHTTP/1.1"); found {
		_, _ = conn.Write([]byte(interim + "\r\n\r\n"))
		text = "HTTP/1.1" + final
	}
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	head = strings.ReplaceAll(head, "LENGTH", fmt.Sprintf("Content-Length: %d", len(body)))
	if m.word(0) == "HEAD" {
		body = ""
	}
	if text != "" {
		_, _ = conn.Write([]byte(head + "\r\n\r\n" + body))
	}
	if m.word(0) == "HEAD" && (name == "eof" || name == "cut" || name == "broken") {
		return true // The response is complete, so the end of the connection would race with the next request.
	}
	return !slices.Contains([]string{"close", "eof", "old", "broken", "cut", "gone"}, name)
}

// token returns 16 digits that identify the request line, the host and the body of a request.
// A client with the answer to another request gets another token.
func token(m *wireMessage) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %s", m.first, m.values("host"), m.body)
	return fmt.Sprintf("%016x", h.Sum64())
}
