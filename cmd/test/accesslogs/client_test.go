package accesslogs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

const (
	delay    = 600 * time.Millisecond // of the slow party of a scenario
	patience = 30 * time.Second
	early    = 10 * time.Millisecond // the servers round their times
)

// span has the times before and after the client sent some bytes.
type span struct{ from, to time.Time }

// request is a request that the client has sent.
type request struct {
	name             string
	first, line, all span // the first byte, the end of the request line, and the end of the head
	end              time.Time
	aborted          bool
}

// moment returns the span of the moment that a preset names.
func (r *request) moment(m logs.Moment) span {
	switch m {
	case logs.FirstByte:
		return r.first
	case logs.EndOfLine:
		return r.line
	default:
		return r.all
	}
}

// connection sends requests in pieces.
type connection struct {
	t       *testing.T
	conn    net.Conn
	answers *bufio.Reader
}

func connect(t *testing.T, at string) *connection {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &connection{t, conn, bufio.NewReader(conn)}
}

func (c *connection) send(text string) span {
	c.t.Helper()
	from := time.Now()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
	return span{from, time.Now()}
}

// pause waits in real time, as a slow client does.
func pause(d time.Duration) { <-time.After(d) }

// fieldsText has a quote in a value, which each server escapes in its own way.
func fieldsText(more string) string {
	return "Host: localhost\r\nX-Client-Id: " + clientID + "\r\n" + more + "\r\n"
}

const clientID = `me "7"`

// get sends a request at once, or with pauses of wait between the first byte, the rest of the request line, and the rest of the head.
func (c *connection) get(name, method, more string, wait time.Duration) *request {
	line := method + " /" + name + "?x=1 HTTP/1.1\r\n"
	r := &request{name: name}
	if wait == 0 {
		r.first = c.send(line + fieldsText(more))
		r.line, r.all = r.first, r.first
		return r
	}
	r.first = c.send(line[:1])
	pause(wait)
	r.line = c.send(line[1:])
	pause(wait)
	r.all = c.send(fieldsText(more))
	return r
}

// read reads the answer.
func (c *connection) read(r *request) *request {
	c.t.Helper()
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", r.name, err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		c.t.Fatalf("%s: %v", r.name, err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		c.t.Errorf("%s: status %d", r.name, answer.StatusCode)
	}
	r.end = time.Now()
	return r
}

// scenarios sends the requests of all scenarios over HTTP/1.1. round is the start of their paths.
func scenarios(t *testing.T, at, round string) (all []*request) {
	t.Helper()
	c := connect(t, at)
	all = append(all, c.read(c.get(round+"plain", "GET", "", 0)))

	c = connect(t, at)
	all = append(all, c.read(c.get(round+"head", "GET", "", delay)))

	c = connect(t, at)
	r := c.get(round+"body", "POST", "Content-Length: 4\r\n", 0)
	pause(delay)
	c.send("body")
	all = append(all, c.read(r))

	c = connect(t, at)
	all = append(all, c.read(c.get(round+"service", "GET", "", 0)))

	c = connect(t, at)
	r = c.get(round+"reader", "GET", "", 0)
	pause(delay)
	all = append(all, c.read(r))

	c = connect(t, at)
	all = append(all, c.read(c.get(round+"before", "GET", "", 0)))
	pause(delay)
	all = append(all, c.read(c.get(round+"idle", "GET", "", 0)))

	c = connect(t, at)
	r = c.get(round+"abort", "GET", "", 0)
	pause(delay / 3)
	_ = c.conn.Close()
	r.aborted = true
	return append(all, r)
}

// streams sends parallel requests on one connection of HTTP/2.
func streams(t *testing.T, at, round string) []*request {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	all := make([]*request, 6)
	var wait sync.WaitGroup
	for i := range all {
		all[i] = &request{name: fmt.Sprintf("%sstream-%d", round, i)}
		if i == 0 { // It opens the connection.
			stream(t, client, at, all[i])
			continue
		}
		wait.Go(func() { stream(t, client, at, all[i]) })
	}
	wait.Wait()
	return all
}

func stream(t *testing.T, client *http.Client, at string, r *request) {
	t.Helper()
	var sent span
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { sent.from = time.Now() },
		WroteHeaders: func() { sent.to = time.Now() },
	})
	ask(ctx, t, client, "http://"+at+"/"+r.name)
	r.end = time.Now()
	r.first, r.line, r.all = sent, sent, sent
}

func ask(ctx context.Context, t *testing.T, client *http.Client, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("X-Client-Id", clientID)
	answer, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		t.Errorf("%s: %v, %v", url, answer, err)
	}
}
