package acceptance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const streamConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: uploads, match: {path: /limited}, key: [ip], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// TestEventsOneByOne: server-sent events arrive one by one. The service sends the next event
// after the client has read the last, so a proxy that keeps an event back would block both.
func TestEventsOneByOne(t *testing.T) {
	t.Parallel()
	read := make(chan int, 1)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		flush := http.NewResponseController(w)
		for n := range 20 {
			fmt.Fprintf(w, "data: %d\n\n", n)
			if err := flush.Flush(); err != nil {
				t.Error(err)
			}
			select {
			case got := <-read:
				if got != n {
					t.Errorf("the client has read %d, want %d", got, n)
				}
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer behind.Close()
	i := start(t, streamConfiguration, behind.URL)
	h2 := &http.Transport{Protocols: new(http.Protocols)}
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	for name, transport := range map[string]*http.Transport{"HTTP/1.1": {DisableKeepAlives: true}, "HTTP/2": h2} {
		for _, kind := range []string{"text/event-stream", "application/x-ndjson"} {
			client := &http.Client{Transport: transport, Timeout: patience}
			resp, err := client.Get("http://" + i.Proxy + "/events?type=" + kind)
			if err != nil {
				t.Fatal(err)
			}
			events, lines := bufio.NewScanner(resp.Body), 0
			for events.Scan() {
				if events.Text() == "" {
					continue
				}
				if want := fmt.Sprint("data: ", lines); events.Text() != want {
					t.Errorf("%s: %q, want %q", name, events.Text(), want)
				}
				read <- lines
				lines++
			}
			if lines != 20 || events.Err() != nil {
				t.Errorf("%s by %s: %d events: %v", kind, name, lines, events.Err())
			}
			resp.Body.Close()
		}
	}
}

// TestEventsEnd: a client that leaves ends the answer at the upstream.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "data: 0\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	defer behind.Close()
	w := dial(t, "tcp", start(t, streamConfiguration, behind.URL).Proxy)
	w.send(request("GET / HTTP/1.1", "Host: a"))
	if line, err := w.in.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%q: %v", line, err)
	}
	w.Close()
	select {
	case <-ended:
	case <-t.Context().Done():
	}
}

// TestExpectContinue: with Expect: 100-continue, the upstream's 100 reaches the client once. A
// refused client gets the refusal and does not send its body.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Add(n)
		fmt.Fprint(w, n)
	}))
	defer behind.Close()
	i := start(t, streamConfiguration, behind.URL)
	upload := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(upload, bytes.Repeat([]byte("x"), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--expect100-timeout", "10", "-H", "Expect: 100-continue", "--data-binary", "@" + upload,
		"-w", "\nsent %{size_upload}", "http://" + i.Proxy + "/limited",
	}
	out, err := attempt(t, args...)
	if err != nil || !strings.HasPrefix(out, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.HasSuffix(out, "2097152\nsent 2097152") {
		t.Errorf("an upload: %v\n%s", err, out)
	}
	out, err = attempt(t, args...)
	if err != nil || !strings.HasPrefix(out, "HTTP/1.1 429 ") || !strings.HasSuffix(out, "\nsent 0") {
		t.Errorf("a refused upload: %v\n%s", err, out)
	}
	if got.Load() != 2<<20 {
		t.Errorf("%d bytes reached the upstream, want those of one upload", got.Load())
	}
}

// TestExpectContinueOnTheWire is the same test byte by byte. The proxy requests the body when
// the upstream does, and forwards other answers of the upstream.
func TestExpectContinueOnTheWire(t *testing.T) {
	t.Parallel()
	wanted := make(chan bool, 1)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Errorf("Expect is %q at the upstream", r.Header.Get("Expect"))
		}
		if !<-wanted {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s.", body)
	}))
	defer behind.Close()
	i := start(t, streamConfiguration, behind.URL)
	head := request("POST /x HTTP/1.1", "Host: a", "Content-Length: 4", "Expect: 100-continue")

	w := dial(t, "tcp", i.Proxy)
	w.send(head)
	wanted <- true
	if line, _ := w.in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, want 100", line)
	}
	if line, _ := w.in.ReadString('\n'); line != "\r\n" {
		t.Fatalf("%q follows on 100", line)
	}
	w.send("body")
	if got := w.answer(); got == nil || got.status != http.StatusOK || got.body != "body." {
		t.Errorf("the answer is %+v", got)
	}

	w = dial(t, "tcp", i.Proxy)
	w.send(head)
	wanted <- false
	if got := w.answer(); got == nil || got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("the answer is %+v, want the upstream's 413 and no 100 before it", got)
	}
	if got := w.answer(); got != nil {
		t.Errorf("a connection whose body never came goes on with %+v", got)
	}
}

// TestEarlyAnswer: an upstream answers before it has read the whole request. The answer reaches
// the client at once, also during its body. The connection ends with that answer, because the
// client's next bytes are the rest of the body.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // Otherwise the server reads the body first.
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	defer behind.Close()
	i := start(t, streamConfiguration, behind.URL)
	for name, head := range map[string]string{
		"a length": request("POST /x HTTP/1.1", "Host: a", "Content-Length: 100000"),
		"chunks":   request("POST /x HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "186a0\r\n",
	} {
		w := dial(t, "tcp", i.Proxy)
		w.send(head + strings.Repeat("x", 10_000))
		if got := w.answer(); statusOr0(got) != http.StatusRequestEntityTooLarge || !got.last {
			t.Errorf("%s: the answer is %+v, want 413 and no more", name, got)
		}
		w.send(smuggled)
		if !w.ended() {
			t.Errorf("%s: more comes after the last answer", name)
		}
	}
}
