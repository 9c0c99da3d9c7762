// Command upstream serves the benchmarks of proxies. The path selects the answer:
//
//	/1k, /100k, /10m  a body of that size
//	/slow             1 KiB after 100 ms
//
// Every other path is answered as /1k. The command prints its address on its first line and
// ends on SIGTERM.
//
// The answers are constant bytes, because the upstream shares the processors with the
// measured proxy. An http.Server would use as much processor time as the fastest proxies.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		<-ctx.Done()
		_ = listener.Close() // The process ends even when Close fails.
	}()
	s := newService()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

// answer is a response, as it is sent.
type answer struct {
	response []byte
	delay    time.Duration
}

type service struct {
	byPath map[string]answer
	other  answer
}

func newService() *service {
	small := answer{response: response(1 << 10)}
	return &service{
		byPath: map[string]answer{
			"/100k": {response: response(100 << 10)},
			"/10m":  {response: response(10 << 20)},
			"/slow": {response: small.response, delay: 100 * time.Millisecond},
		},
		other: small,
	}
}

// response returns the head and a body of the given size, which is a multiple of 8.
func response(size int) []byte {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nDate: %s\r\n\r\n",
		size, time.Now().UTC().Format(http.TimeFormat))
	return append([]byte(head), bytes.Repeat([]byte("headgate"), size/len("headgate"))...)
}

// serve answers the requests of a connection until the client closes it.
func (s *service) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // The answers have been sent.
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		a, ok := s.byPath[request.URL.Path]
		if !ok {
			a = s.other
		}
		if a.delay > 0 {
			<-time.After(a.delay)
		}
		if _, err := conn.Write(a.response); err != nil || request.Close {
			return
		}
	}
}
