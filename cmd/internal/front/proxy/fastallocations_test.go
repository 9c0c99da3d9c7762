package proxy

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestFastAllocations sends requests over one connection of the fast path to a service that allocates nothing, and
// counts the allocations of the whole process. Stores, stages and logs may keep what is left after the request: the texts of
// the two headers, the request, its context, its id, and the fields of the closest policy. A throttle adds none.
func TestFastAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 8}})
	if err != nil {
		t.Fatal(err)
	}
	throttled, err := guard.New(guard.Config{Rules: []guard.Rule{product(t)}, Store: allowed(), Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	const texts, requests, ids, policies = 2, 2, 1, 1
	for name, change := range map[string]func(*Config){"a rule": func(*Config) {}, "a throttle": func(c *Config) { c.Guard = throttled }} {
		if n := fastAllocations(t, change); n > texts+requests+ids+policies {
			t.Errorf("%s: a request allocates %v times, want %d", name, n, texts+requests+ids+policies)
		}
	}
}

// fastAllocations returns the allocations of a request.
func fastAllocations(t *testing.T, change func(*Config)) float64 {
	t.Helper()
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { answerEach(behind) })
	up, err := NewUpstream(UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String()), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, allowed(), up.URL.String(), up, onThePlane(true), change)
	_, at := start(t, p, nil, ServerConfig{ReadHeader: time.Minute, Idle: time.Minute, RequestID: "X-Request-Id"})
	client, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	request := []byte("GET /v1/product HTTP/1.1\r\nHost: api.example.com\r\nX-Client-Id: a\r\nAccept: */*\r\n\r\n")
	answer, end := make([]byte, 4096), []byte("\r\n\r\nhello")
	n := testing.AllocsPerRun(500, func() {
		if _, err := client.Write(request); err != nil {
			t.Fatal(err)
		}
		for got := 0; !bytes.HasSuffix(answer[:got], end); {
			n, err := client.Read(answer[got:])
			if err != nil {
				t.Fatalf("after %q: %v", answer[:got], err)
			}
			got += n
		}
	})
	_ = client.Close()
	_ = behind.Close()
	up.CloseIdleConnections()
	serving.Wait()
	return n
}

// answerEach answers each request of the first connection.
func answerEach(ln net.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	in := make([]byte, 4096)
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nServer: s\r\nContent-Length: 5\r\n\r\nhello")
	for {
		if _, err := conn.Read(in); err != nil { // Each request fits in one segment.
			return
		}
		if _, err := io.Writer(conn).Write(answer); err != nil {
			return
		}
	}
}
