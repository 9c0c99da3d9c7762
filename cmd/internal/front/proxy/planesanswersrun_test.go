package proxy

import (
	"bytes"
	"io"
	"log"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answerPair is a pair of planes before upstreams that send scripted answers.
type answerPair struct {
	*pair

	upstreams [2]answering
}

func newAnswerPair(tb testing.TB) *answerPair {
	tb.Helper()
	p := new(answerPair)
	p.pair = &pair{newPlane(tb, false, planeSetup{script: p.upstreams[0].serve}), newPlane(tb, true, planeSetup{script: p.upstreams[1].serve})}
	return p
}

// check lets a client receive the answer on each plane, and then sends the requests of a second
// client, which may use the same connection to the upstream.
func (p *answerPair) check(t *testing.T, a *upstreamAnswer, method string) {
	t.Helper()
	fields := "\r\n\r\n"
	if method == "POST" {
		fields = "\r\nContent-Length: 3\r\n\r\nabc"
	}
	first := said(method+" for "+a.name, method+" /one HTTP/1.1\r\nHost: a.example"+fields)
	second := said("the client after "+a.name, "GET /two HTTP/1.1\r\nHost: a.example\r\n\r\nPOST /two HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc")
	var firsts, seconds [2]*transcript
	for i, plane := range [...]*plane{p.standard, p.fast} {
		p.upstreams[i].next.Store(a)
		firsts[i] = plane.converse(first)
		p.upstreams[i].next.Store(nil)
		seconds[i] = plane.converse(second)
		text := strings.Join(seconds[i].text(), "\n")
		if strings.Contains(text, "first") || len(seconds[i].answers) != 2 || seconds[i].answers[0].word(1) != "200" || seconds[i].answers[1].word(1) != "200" {
			t.Errorf("%s: the second client receives on plane %d:\n%s\n  pieces %.1000q", first.name, i, text, a.pieces)
		}
	}
	for i, found := range [...]string{difference(firsts[0], firsts[1]), difference(seconds[0], seconds[1])} {
		if found != "" {
			t.Errorf("%s, client %d: pieces %.1000q\n%s", first.name, i+1, a.pieces, found)
		}
	}
	p.forget()
}

// TestPlanesFirstEvent checks that the first event of a stream reaches the client within 50 ms,
// while the upstream is silent, whatever the framing is.
func TestPlanesFirstEvent(t *testing.T) {
	for _, framing := range []string{"Transfer-Encoding: chunked\r\n\r\n11\r\ndata: the first\n\n\r\n", "\r\ndata: the first\n\n", "Content-Length: 1000\r\n\r\ndata: the first\n\n"} {
		for _, fast := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var upstream answering
				p := newPlane(t, fast, planeSetup{script: upstream.serve})
				defer p.stop()
				upstream.next.Store(&upstreamAnswer{pieces: []string{"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing}})
				conn, err := p.clients.(*memoryListener).connect(p.clients.Addr())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Write([]byte("GET /events HTTP/1.1\r\nHost: a.example\r\n\r\n"))
				time.Sleep(50 * time.Millisecond) //nolint:forbidigo // In a bubble.
				synctest.Wait()
				if received, _ := conn.in.peek(); !strings.Contains(string(received), "data: the first") {
					t.Errorf("fast %v, %.40q: the client has received %q after 50 ms", fast, framing, received)
				}
				conn.Abort()
				p.upstream.stop()
			})
		}
	}
}

// silenceTransport discards the messages about unsolicited answers. The transport of net/http has
// no other logger, and tests run at the same time, so nothing restores the logger.
var silenceTransport = sync.OnceFunc(func() { log.SetOutput(unsolicited{log.Writer()}) })

// unsolicited is a writer that discards the messages about unsolicited answers.
type unsolicited struct{ io.Writer }

// Write implements io.Writer.
func (u unsolicited) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response")) {
		return len(line), nil
	}
	return u.Writer.Write(line)
}
