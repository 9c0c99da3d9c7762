package proxy

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/testkit/backend"
)

// relay stands between a proxy and a real web server, and records the bytes of each connection.
type relay struct {
	to      string // the unix socket of the web server
	ln      net.Listener
	mu      sync.Mutex
	talks   []*relayed
	serving sync.WaitGroup
}

// relayed are the bytes of one connection.
type relayed struct{ sent, received strings.Builder }

// startRelay returns a relay and the path of its socket.
func startRelay(t *testing.T, to string) (r *relay, at string) {
	t.Helper()
	at = t.TempDir() + "/s"
	ln := opening(t, "unix", at)
	r = &relay{to: to, ln: ln}
	r.serving.Go(r.serve)
	return r, at
}

// stop ends the relay after its connections have ended.
func (r *relay) stop() {
	_ = r.ln.Close()
	r.serving.Wait()
}

func (r *relay) serve() {
	for {
		from, err := r.ln.Accept()
		if err != nil {
			return
		}
		talk := new(relayed)
		r.mu.Lock()
		r.talks = append(r.talks, talk)
		r.mu.Unlock()
		to, err := net.Dial("unix", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		r.serving.Go(func() { pass(to, from, &talk.sent) })
		r.serving.Go(func() { pass(from, to, &talk.received) })
	}
}

// pass copies bytes and records them. It ends both connections at the end of the source.
func pass(to, from net.Conn, into io.Writer) {
	_, _ = io.Copy(to, io.TeeReader(from, into))
	_ = to.Close()
	_ = from.Close()
}

// served counts the requests that the web server has answered, by method and path. Answers
// without a body count under "". The relay has ended.
func (r *relay) served() (byPath map[string]int, total int, faults []string) {
	byPath = map[string]int{}
	for _, talk := range r.talks {
		var methods []string
		for unread := []byte(talk.sent.String()); len(unread) > 0; {
			var m wireMessage
			m, unread = parseRequest(unread)
			if m.fault != "" {
				faults = append(faults, m.fault+": "+m.first)
				break
			}
			methods = append(methods, m.word(0))
		}
		for unread := []byte(talk.received.String()); len(unread) > 0; {
			method := "GET"
			if len(methods) > 0 {
				method, methods = methods[0], methods[1:]
			}
			var m wireMessage
			m, unread = parseResponse(unread, method, true)
			total++
			if words := strings.Split(m.body, backend.Separator); len(words) == 5 {
				byPath[words[2]+" "+words[4]]++
			}
		}
	}
	return byPath, total, faults
}
