// Command floor forwards HTTP/1.1 requests without a body, and does nothing else that a proxy does:
// a goroutine for each connection, plain net.Conn, and no header field but Content-Length of the
// answer. It shows the least processor time of a proxy in Go. The command prints its address on its
// first line and ends on SIGTERM.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	var f floor
	flag.StringVar(&f.upstream, "upstream", "", "HOST:PORT of the upstream")
	flag.StringVar(&f.certificate, "certificate", "", "PEM file with a certificate and its key; serves TLS")
	flag.BoolVar(&f.refuses, "refuse", false, "answer every request with 429, without the upstream")
	flag.BoolVar(&f.closes, "close", false, "close each connection after its first answer")
	flag.Parse()
	if err := f.run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

type floor struct {
	upstream, certificate string
	refuses, closes       bool

	buffers sync.Pool
	mu      sync.Mutex // guards idle
	idle    []net.Conn
}

func (f *floor) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	if f.certificate != "" {
		certificate, err := tls.LoadX509KeyPair(f.certificate, f.certificate)
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		url = "https://" + listener.Addr().String()
	}
	fmt.Println(url)
	go func() {
		<-ctx.Done()
		_ = listener.Close() // The process ends even when Close fails.
	}()
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go f.serve(client)
	}
}

// buffers are those of a connection.
type buffers struct {
	request [8 << 10]byte
	answer  [32 << 10]byte
}

const (
	headEnd    = "\r\n\r\n"
	lengthName = "Content-Length: "
	closing    = "Connection: close\r\n"
	refusal    = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
)

// serve answers the requests of a connection until one side closes it.
func (f *floor) serve(client net.Conn) {
	defer func() { _ = client.Close() }() // The answers have been sent.
	b, ok := f.buffers.Get().(*buffers)
	if !ok {
		b = new(buffers)
	}
	defer f.buffers.Put(b)
	read := 0
	for {
		n, end, err := readHead(client, b.request[:], read)
		if err != nil {
			return
		}
		if f.refuses {
			_, err = client.Write([]byte(refusal))
		} else {
			err = f.forward(client, b.request[:end], b.answer[:])
		}
		if err != nil || f.closes {
			return
		}
		read = copy(b.request[:], b.request[end:n])
	}
}

// readHead reads until the head has ended. The buffer already has n bytes. It returns the number of bytes in the
// buffer, and of those in the head.
func readHead(c net.Conn, buffer []byte, n int) (read, end int, err error) {
	for {
		if i := bytes.Index(buffer[:n], []byte(headEnd)); i >= 0 {
			return n, i + len(headEnd), nil
		}
		if n == len(buffer) {
			return n, 0, errors.New("the head is too long")
		}
		more, err := c.Read(buffer[n:])
		if err != nil {
			return n, 0, err
		}
		n += more
	}
}

// forward sends a request to the upstream, and the answer to the client.
func (f *floor) forward(client net.Conn, request, buffer []byte) error {
	if f.closes {
		if i := bytes.Index(request, []byte(closing)); i >= 0 {
			request[i] = 'X' // Otherwise the upstream would close its connection, which nginx keeps too.
		}
	}
	upstream, err := f.connect()
	if err != nil {
		return err
	}
	if _, err := upstream.Write(request); err != nil {
		return err
	}
	n, end, err := readHead(upstream, buffer, 0)
	if err != nil {
		return err
	}
	left, err := contentLength(buffer[:end])
	if err != nil {
		return err
	}
	left -= n - end
	first := buffer[:n]
	if f.closes {
		first = withClosing(first)
	}
	if _, err := client.Write(first); err != nil {
		return err
	}
	for left > 0 {
		n, err := upstream.Read(buffer[:min(left, len(buffer))])
		if err != nil {
			return err
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return err
		}
		left -= n
	}
	f.mu.Lock()
	f.idle = append(f.idle, upstream)
	f.mu.Unlock()
	return nil
}

// connect returns an idle connection to the upstream, or a new one.
func (f *floor) connect() (net.Conn, error) {
	f.mu.Lock()
	if n := len(f.idle); n > 0 {
		c := f.idle[n-1]
		f.idle = f.idle[:n-1]
		f.mu.Unlock()
		return c, nil
	}
	f.mu.Unlock()
	return net.Dial("tcp", f.upstream) //nolint:noctx // The upstream is on loopback.
}

func contentLength(head []byte) (int, error) {
	_, value, found := bytes.Cut(head, []byte(lengthName))
	if !found {
		return 0, errors.New("the answer has no Content-Length")
	}
	value, _, _ = bytes.Cut(value, []byte("\r"))
	return strconv.Atoi(string(value))
}

// withClosing adds a field behind the status line.
func withClosing(answer []byte) []byte {
	line := bytes.IndexByte(answer, '\n') + 1
	return append(append(append(make([]byte, 0, len(answer)+len(closing)), answer[:line]...), closing...), answer[line:]...)
}
