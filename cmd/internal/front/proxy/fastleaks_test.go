package proxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
)

// TestCutsLeaveNothing cuts connections on both sides at random. In the end no request is in
// flight, no connection is open, no slot of a stage is taken, and no goroutine is left.
func TestCutsLeaveNothing(t *testing.T) { sendCut(t, 500) }

// sendCut sends requests that either side cuts at random.
func sendCut(t *testing.T, requests int) {
	t.Helper()
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { serveCut(behind) })
	slots := atmost.New(1<<20, 0)
	g, err := guard.New(guard.Config{Rules: []guard.Rule{product(t)}, Store: allowed(), Stages: []guard.Stage{slots}})
	if err != nil {
		t.Fatal(err)
	}
	// A client that sends part of a body and then waits occupies its place for idle. Nothing depends on the length.
	const idle = time.Second
	up, err := NewUpstream(UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String()), Timeout: 5 * time.Second, BodyIdle: idle})
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, allowed(), up.URL.String(), up, func(c *Config) { c.Guard, c.BodyIdle = g, idle })
	s, at := start(t, p, nil, ServerConfig{ReadHeader: 50 * time.Millisecond, Idle: 20 * time.Millisecond, checkEvery: 10 * time.Millisecond})
	var clients sync.WaitGroup
	const shards = 8
	for shard := range uint64(shards) {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(shard, 7))
			for range requests / shards {
				sendOneCut(at, random)
			}
		})
	}
	clients.Wait()
	eventually(t, "the end of all requests", func() bool {
		used, _, waiting := slots.Slots()
		return p.traffic.InFlight.Load() == 0 && s.open.Load() == 0 && used == 0 && waiting == 0
	})
	_ = behind.Close()
	up.CloseIdleConnections()
	serving.Wait()
}

// sendOneCut sends up to three requests on one connection, and cuts the connection at a
// random time.
func sendOneCut(at string, random *rand.Rand) {
	conn, err := net.Dial("tcp", at)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	sent := ""
	for range 1 + random.IntN(3) {
		n := random.IntN(40_000)
		switch random.IntN(4) {
		case 0:
			sent += fmt.Sprintf("POST /v1/product?n=%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", n)
		case 1:
			sent += fmt.Sprintf("GET /v1/product?n=%d HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", n)
		default:
			sent += fmt.Sprintf("GET /v1/product?n=%d HTTP/1.1\r\nHost: a\r\n\r\n", n)
		}
	}
	if random.IntN(3) == 0 {
		sent = sent[:random.IntN(len(sent))]
	}
	_, _ = io.WriteString(conn, sent)
	switch random.IntN(4) {
	case 0:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	case 1:
		_, _ = io.CopyN(io.Discard, conn, random.Int64N(20_000))
	default:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn)
	}
}

// serveCut answers requests with bodies of random length, and cuts some answers.
func serveCut(ln net.Listener) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for seed := uint64(0); ; seed++ {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
			answerCut(conn, rand.New(rand.NewPCG(seed, 8)))
		})
	}
}

func answerCut(conn net.Conn, random *rand.Rand) {
	in := make([]byte, 4<<10)
	for {
		if _, err := conn.Read(in); err != nil {
			return
		}
		length := random.IntN(60_000)
		text := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
		body := bytes.Repeat([]byte("x"), length)
		switch random.IntN(8) {
		case 0:
			_, _ = io.WriteString(conn, text[:random.IntN(len(text))])
			return
		case 1:
			_, _ = conn.Write(append([]byte(text), body[:length/2]...))
			return
		case 2:
			body = append(body, "late"...)
		case 3:
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond) //nolint:forbidigo // A slow service.
		}
		if _, err := conn.Write(append([]byte(text), body...)); err != nil {
			return
		}
	}
}

// TestDisconnectedClientEndsTheRequest checks that the request to the service ends within a second
// after its client has disconnected.
func TestDisconnectedClientEndsTheRequest(t *testing.T) {
	for name, sent := range map[string]string{
		"plain": "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n",
		"odd":   "GET http://a/v1/product HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			behind, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer behind.Close()
			_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String())}), nil, ServerConfig{})
			client, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(client, sent)
			service, err := behind.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			if _, err := service.Read(make([]byte, 4<<10)); err != nil {
				t.Fatal(err)
			}
			_ = client.Close()
			left := time.Now()
			_ = service.SetReadDeadline(left.Add(10 * time.Second))
			if _, err := service.Read(make([]byte, 1)); err == nil || time.Since(left) > time.Second {
				t.Errorf("the request to the service ended with %v after %v, want its end within 1 s", err, time.Since(left))
			}
		})
	}
}
