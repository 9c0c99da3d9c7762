package acceptance

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const inheritedConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: all, key: [ip], limits: ["1000000/s"]}
proxy: {listen: "systemd:web", upstream: "%s"}
`

// inherit starts headgate proxy as systemd does for a socket unit: the open socket is file 3,
// and its name and number are in the environment.
func inherit(t *testing.T, configuration string, socket *os.File) *instance {
	t.Helper()
	path := file(t, configuration+adminAnywhere)
	command := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web exec "$0" proxy --config "$1"`, binary, path)
	command.ExtraFiles = []*os.File{socket}
	return serve(t, path, command)
}

// TestHandOver restarts the proxy three times under load. The socket stays open. The new process
// serves it before the old one gets SIGTERM. No request fails: clients with kept connections are
// told to open new ones.
func TestHandOver(t *testing.T) {
	wrk := tool(t, "wrk", "wrk")
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer behind.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		t.Fatalf("the listener is a %T", ln)
	}
	socket, err := tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	configuration := fmt.Sprintf(inheritedConfiguration, behind.URL)
	now := inherit(t, configuration, socket)
	url := "http://" + ln.Addr().String() + "/"
	if now.Proxy != ln.Addr().String() {
		t.Errorf("it serves on %s, want %s", now.Proxy, ln.Addr())
	}

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var asked [2]atomic.Int64
	for n, protocols := range []func(*http.Protocols){
		func(p *http.Protocols) { p.SetHTTP1(true) }, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		clients.Go(func() { hammer(t, url, protocols, stop, &asked[n]) })
	}
	load := exec.CommandContext(t.Context(), wrk, "-t1", "-c16", "-d5s", url)
	var printed strings.Builder
	load.Stdout, load.Stderr = &printed, &printed
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-time.After(time.Second)
		next := inherit(t, configuration, socket)
		if err := now.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-now.ended
		if status := exitStatus(now.status); status != 0 {
			t.Errorf("the old process ends with %d\n%s", status, now.text())
		}
		now = next
	}
	if err := load.Wait(); err != nil {
		t.Errorf("wrk: %v", err)
	}
	close(stop)
	clients.Wait()
	if out := printed.String(); strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") {
		t.Errorf("wrk met errors:\n%s", out)
	}
	t.Logf("%d requests of wrk, %d by HTTP/1.1 and %d by HTTP/2 through three restarts",
		number(t, []byte(printed.String()), `(\d+) requests in`), asked[0].Load(), asked[1].Load())
}

// hammer sends requests without pauses over a kept connection. They have bodies, so no client
// repeats them by itself.
func hammer(t *testing.T, url string, protocols func(*http.Protocols), stop <-chan struct{}, asked *atomic.Int64) {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	protocols(transport.Protocols)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	for {
		select {
		case <-stop:
			return
		default:
		}
		resp, err := client.Post(url, "text/plain", io.MultiReader(strings.NewReader("hello"))) // This body has no Content-Length.
		if err != nil {
			t.Errorf("request %d: %v", asked.Load()+1, err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "hello" || resp.StatusCode != http.StatusOK {
			t.Errorf("request %d: %d %q: %v", asked.Load()+1, resp.StatusCode, body, err)
		}
		asked.Add(1)
	}
}

// TestNoSocketInherited: without a socket, the process says how to start it.
func TestNoSocketInherited(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	path := file(t, fmt.Sprintf(inheritedConfiguration, behind.URL)+adminAnywhere)
	if status, _, stderr := call(t, "proxy", "--config", path); status != 1 || !strings.Contains(stderr, "socket unit") {
		t.Errorf("it ends with %d: %s", status, stderr)
	}
}
