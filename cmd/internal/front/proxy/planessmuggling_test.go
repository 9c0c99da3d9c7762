package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/backend"
)

// smugglingForms are conversations that hide a request from a proxy or from a service that reads
// them in another way. %d in a path numbers the conversation.
func smugglingForms() (forms []string) {
	const hidden, after = "GET /smuggled-%[1]d HTTP/1.1\r\nHost: s\r\nX: ", "x\r\n\r\nGET /after-%[1]d HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
	add := func(fields, body string) {
		for _, line := range []string{"POST /outer-%[1]d HTTP/1.1", "GET /outer-%[1]d HTTP/1.1", "HEAD /outer-%[1]d HTTP/1.1", "POST /outer-%[1]d HTTP/1.0", "POST http://b.example/outer-%[1]d HTTP/1.1"} {
			forms = append(forms, line+"\r\nHost: a.example\r\n"+fields+"\r\n\r\n"+body+after)
		}
	}
	early, late := "0\r\n\r\n"+hidden, "5\r\nhello\r\n0\r\n\r\n"+hidden
	for _, coding := range codingLines {
		coding = strings.ReplaceAll(coding, "%", "%%")
		add(coding+"\r\nContent-Length: "+fmt.Sprint(len(early)), early)
		add("Content-Length: 3\r\n"+coding, late)
		add(coding, late)
	}
	for _, length := range lengthLines {
		add(length, "hello"+hidden)
		add(strings.ReplaceAll(length, "5", fmt.Sprint(len(hidden))), hidden)
		add(length+"\r\nContent-Length: 0", hidden)
	}
	for _, line := range oddLines {
		add(line+"\r\n"+hidden, "")
		add(strings.ReplaceAll(line, "\r\n", "\n")+"\n\n"+hidden, "")
	}
	return forms
}

// TestNoSmuggledRequests sends the forms through both planes to real web servers. No server may
// see a request that the guard did not decide, nor a message that another server could read in
// another way.
func TestNoSmuggledRequests(t *testing.T) {
	t.Parallel()
	forms := smugglingForms()
	for _, c := range slices.Concat(syntaxCorpus(), chunkCorpus(), requestLineCorpus(), hostCorpus(), targetCorpus()) {
		text := strings.ReplaceAll(strings.Join(c.pieces, ""), "%", "%%")
		forms = append(forms, strings.ReplaceAll(text, " /", " /n%[1]d/"))
	}
	for _, form := range foldedForms() {
		forms = append(forms, form.sent)
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return len(form)%rarely() != 0 })
	for i := range forms {
		if strings.Contains(forms[i], "%[1]d") {
			forms[i] = fmt.Sprintf(forms[i], i)
		}
	}
	t.Logf("%d forms", len(forms))
	for name, at := range map[string]string{"net/http": serveNetHTTP(t), "nginx": backend.Nginx(t), "Node": backend.Node(t)} {
		for _, fast := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fast %v", name, fast), func(t *testing.T) {
				t.Parallel()
				smuggle(t, at, fast, forms)
			})
		}
	}
}

// TestRelayCountsHiddenRequests checks that a relay counts a request that the server answers and
// nothing decided.
func TestRelayCountsHiddenRequests(t *testing.T) {
	r, at := startRelay(t, serveNetHTTP(t))
	conn, err := net.Dial("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "HEAD /outer HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
	r.stop()
	if byPath, total, faults := r.served(); byPath["GET /smuggled"] != 1 || total != 2 || len(faults) > 0 {
		t.Errorf("the relay counts %v, %d in total, faults %q, want 2 with the hidden request", byPath, total, faults)
	}
}

// serveNetHTTP starts a server of net/http that answers like those of package backend.
func serveNetHTTP(t *testing.T) (socket string) {
	t.Helper()
	socket = t.TempDir() + "/s"
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join([]string{r.Host, r.Header.Get("X-Api-Key"), r.Method, "", r.URL.Path}, backend.Separator))
	}))
	_ = s.Listener.Close()
	s.Listener = opening(t, "unix", socket)
	s.Start()
	t.Cleanup(s.Close)
	return socket
}

// smuggle sends the forms to one web server through one plane.
func smuggle(t *testing.T, service string, fast bool, forms []string) {
	t.Helper()
	r, at := startRelay(t, service)
	p := newPlane(t, fast, planeSetup{sockets: true, service: at, patience: 100 * time.Millisecond})
	go func() {
		for conn := range p.accepted {
			_ = conn // The driver of this test needs no connection of the server.
		}
	}()
	next := make(chan string)
	var senders sync.WaitGroup
	for range 32 {
		senders.Go(func() {
			for form := range next {
				sendAll(p.clients.Addr().String(), form)
			}
		})
	}
	for _, form := range forms {
		next <- form
	}
	close(next)
	senders.Wait()
	p.stop()
	close(p.accepted)
	r.stop()
	judgeServed(t, r, p.verdicts.take(), forms)
}

// sendAll sends bytes, and reads to the end of the connection.
func sendAll(to, form string) {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, form)
	_, _ = io.Copy(io.Discard, conn)
}

// judgeServed compares what a web server answered with what the guard decided.
func judgeServed(t *testing.T, r *relay, verdicts, forms []string) {
	t.Helper()
	decided, allowed := map[string]int{}, 0
	for _, v := range verdicts {
		words := strings.Split(v, " ")
		decided[words[0]+" "+words[2]]++
		if !strings.Contains(v, " deny ") {
			allowed++
		}
	}
	byPath, total, faults := r.served()
	for request, n := range byPath {
		_, path, _ := strings.Cut(request, " ")
		if n > decided[request] && !strings.Contains(path, " ") && latin(path) == path {
			t.Errorf("%s: the server answered %d requests, the guard decided %d", request, n, decided[request])
		}
	}
	if total > allowed || total < len(forms)/4 {
		t.Errorf("the server answered %d requests, want at most the %d that the guard allowed, and at least a quarter of %d", total, allowed, len(forms))
	}
	if len(faults) > 0 {
		t.Errorf("the proxy forwarded malformed messages: %q", faults)
	}
	t.Logf("the guard allowed %d requests, the server answered %d", allowed, total)
}
