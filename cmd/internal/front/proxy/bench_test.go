package proxy

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// BenchmarkRequest sends requests over one connection through a proxy with one rule, to a service that does little work. The
// access log is off.
func BenchmarkRequest(b *testing.B) {
	for name, fast := range map[string]bool{"fast": true, "standard": false} {
		b.Run(name, func(b *testing.B) { benchmarkRequest(b, fast) })
	}
}

func benchmarkRequest(b *testing.B, fast bool) {
	b.Helper()
	behind := opening(b, "tcp", "127.0.0.1:0")
	go answerEach(behind)
	up, err := NewUpstream(UpstreamConfig{URL: parsed(b, "http://"+behind.Addr().String()), Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	p := newProxy(b, allowed(), up.URL.String(), up, onThePlane(fast))
	_, at := start(b, p, nil, ServerConfig{ReadHeader: time.Minute, Idle: time.Minute, RequestID: "X-Request-Id"})
	client, err := net.Dial("tcp", at)
	if err != nil {
		b.Fatal(err)
	}
	request := []byte("GET /v1/product HTTP/1.1\r\nHost: api.example.com\r\nX-Client-Id: a\r\nAccept: */*\r\n\r\n")
	answer, end := make([]byte, 4096), []byte("\r\n\r\nhello")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(request); err != nil {
			b.Fatal(err)
		}
		for got := 0; !bytes.HasSuffix(answer[:got], end); {
			n, err := client.Read(answer[got:])
			if err != nil {
				b.Fatalf("after %q: %v", answer[:got], err)
			}
			got += n
		}
	}
	_ = client.Close()
	_ = behind.Close()
	up.CloseIdleConnections()
}

// BenchmarkTimes measures what a forwarded request costs for its times and its origin.
func BenchmarkTimes(b *testing.B) {
	now := time.Now()
	all, traffic := newPlaces(1, now), new(report.Traffic)
	at := all.take(nil, 1, now)
	x := &exchange{place: at, forwarded: true, finished: true, status: 200}
	p := &Proxy{traffic: traffic}
	ctx := b.Context()
	for b.Loop() {
		at.startRequest(now)
		at.startService(now)
		at.startWait(now)
		p.count(ctx, x)
		at.observe(traffic, now, false)
	}
}
