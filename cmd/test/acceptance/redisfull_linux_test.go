package acceptance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullConfiguration has one rule with long keys, and one with long answers. It takes the number of
// connections, and further settings of server.resp.
const fullConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: moved, match: {path: /moved/*}, key: [all], limits: ["0/s"],
     on_exceed: {action: redirect, location: "https://busy.example.com{path}"}}
  - {name: named, key: ["header:a"], limits: ["0/s"]}
server:
  grpc: "off"
  http: "off"
  resp:
    address: "127.0.0.1:0"
    max_connections: %d
    idle_timeout: 10s
    %s
` + adminAnywhere

// fullServer is a server whose clients fill their connections.
type fullServer struct {
	*instance

	trusting *tls.Config // of the clients; nil without TLS
	files    int         // open before the clients
	inUse    float64     // before the clients
	peaked   int64       // before the clients
	most     float64     // the memory of a connection that check prints
}

// startFull starts a server for a number of connections. environment adds to that of the process.
func startFull(t *testing.T, connections int, secure bool, environment ...string) *fullServer {
	t.Helper()
	f, settings := new(fullServer), ""
	if secure {
		ca := newAuthority(t)
		files := ca.issue(t, "redis.example", 2)
		settings = fmt.Sprintf("tls: {cert: %s, key: %s}", files.cert, files.key)
		f.trusting = &tls.Config{RootCAs: ca.pool(), ServerName: "redis.example"}
	}
	path := file(t, fmt.Sprintf(fullConfiguration, connections, settings))
	command := exec.Command(binary, "server", "--config", path)
	command.Env = append(os.Environ(), environment...)
	f.instance = serve(t, path, command)
	f.inUse = inUse(t, f.instance) // The first call opens a connection to each listener of admin.
	f.files, f.peaked, f.most = f.uses(t).files, peak(t, command.Process.Pid), mostOfRedisConnection(t, path)
	return f
}

// mostOfRedisConnection gives the most memory of a connection in bytes, as headgate check prints it.
func mostOfRedisConnection(t *testing.T, path string) float64 {
	t.Helper()
	status, text, faults := call(t, "check", "--config", path)
	found := regexp.MustCompile(`([0-9]+) Redis connections together ([0-9.]+)MiB`).FindStringSubmatch(text)
	if status != 0 || found == nil {
		t.Fatalf("check has status %d and prints\n%s%s", status, text, faults)
	}
	connections, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	together, err := strconv.ParseFloat(found[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	return together * (1 << 20) / float64(connections)
}

// dial opens a connection with small buffers in the kernel, so that few bytes fill them.
func (f *fullServer) dial(t *testing.T) net.Conn {
	t.Helper()
	const segment, received = 1460, 4 << 10 // The buffer of a sender is a multiple of the segment.
	dialer := net.Dialer{Timeout: patience, Control: func(_, _ string, raw syscall.RawConn) error {
		var segments, buffer error
		if err := raw.Control(func(fd uintptr) {
			segments = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segment)
			buffer = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, received)
		}); err != nil {
			return err
		}
		if segments != nil {
			return segments
		}
		return buffer
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", f.RESP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if f.trusting == nil {
		return conn
	}
	secured := tls.Client(conn, f.trusting)
	if err := secured.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return secured
}

// fillers are clients that have filled their connections, or are about to.
type fillers struct {
	conns []net.Conn
	sent  atomic.Int64 // bytes
	done  sync.WaitGroup
}

// join adds clients of a kind.
func (c *fillers) join(t *testing.T, f *fullServer, kind *fullClient, clients int) {
	t.Helper()
	for range clients {
		conn := f.dial(t)
		c.conns = append(c.conns, conn)
		c.done.Go(func() { kind.send(conn, &c.sent) })
	}
}

// leave closes the connections of all clients.
func (c *fillers) leave() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.done.Wait()
}

// sip has each client read so much that the server writes all that waits in it. Then the server
// finds a full buffer, decides all that is in it, and is stopped again.
func (c *fillers) sip(t *testing.T) {
	t.Helper()
	const more = 100 << 10 // than waits in the kernel
	var all sync.WaitGroup
	for _, conn := range c.conns {
		all.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if n, err := io.CopyN(io.Discard, conn, more); err != nil {
				t.Errorf("a client has read %d bytes: %v", n, err)
			}
		})
	}
	all.Wait()
}

// send sends until the connection is closed, or the kind has sent all. It reads nothing.
func (k *fullClient) send(conn net.Conn, sent *atomic.Int64) {
	write := func(text string, piece int) error {
		for len(text) > 0 {
			n, err := io.WriteString(conn, text[:min(piece, len(text))])
			sent.Add(int64(n))
			if err != nil {
				return err
			}
			text = text[n:]
		}
		return nil
	}
	const most = 16 << 10 // Short pieces show progress.
	piece := most
	if k.byteByByte {
		piece = 1
	}
	for err := write(k.first, piece); err == nil && k.again != ""; {
		err = write(k.again, most)
	}
}

// fills waits until the server reads no more, and gives the memory in use of each connection,
// without garbage. The clients then read some answers, a number of times.
func (f *fullServer) fills(t *testing.T, c *fillers, sips int) (each float64) {
	t.Helper()
	most := f.stops(t, c)
	for range sips {
		c.sip(t)
		most = max(most, f.stops(t, c))
	}
	return (most - f.inUse) / float64(len(c.conns))
}

// stops waits until no client can send, and gives the memory in use then. Before, it would have the memory
// of commands that are decided. On a busy machine, a client that can send may also rest: so the clients must rest for a
// number of measurements, of which the least counts.
func (f *fullServer) stops(t *testing.T, c *fillers) (used float64) {
	t.Helper()
	const rests = 5
	last, resting := int64(0), 0
	eventually(t, "the clients to be stopped", func() bool {
		measured := inUse(t, f.instance)
		if now := c.sent.Load(); now != last || now == 0 {
			last, resting = now, 0
			return false
		}
		if resting++; resting == 1 || measured < used {
			used = measured
		}
		return resting >= rests
	})
	return used
}

// emptied waits until the server has no connection, and no goroutine that serves one.
func (f *fullServer) emptied(t *testing.T, within time.Duration) {
	t.Helper()
	profile, files := "", 0
	for end := time.Now().Add(within); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		_, profile = get(t, "http://"+f.Admin+"/debug/pprof/goroutine?debug=1")
		files = f.uses(t).files
		if files <= f.files && !strings.Contains(profile, "/resp.(*conn)") {
			return
		}
	}
	t.Errorf("the clients have left, and the server has %d open files, want %d, and these goroutines:\n%s", files, f.files, profile)
}

// judge checks what each connection holds: a full buffer at least, and what check prints at most.
func (f *fullServer) judge(t *testing.T, each float64) {
	t.Helper()
	const buffer = 64 << 10
	if each < buffer || each > f.most {
		t.Errorf("a full connection holds %.0f KiB, want %d to %.0f", each/1024, buffer>>10, f.most/1024)
	}
}

// TestRedisProtocolFull is the small form of the attack; make soak runs the full size.
func TestRedisProtocolFull(t *testing.T) {
	t.Parallel()
	const clients = 10
	f := startFull(t, clients+10, false)
	for _, kind := range fullClients() {
		if !kind.quick {
			continue
		}
		all := new(fillers)
		all.join(t, f, &kind, clients)
		each := f.fills(t, all, kind.sips())
		all.leave()
		t.Logf("%s: %.0f KiB each", kind.name, each/1024)
		f.judge(t, each)
	}
	f.emptied(t, patience)
}
