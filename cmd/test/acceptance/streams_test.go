package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// decisionStream is the client's end of a stream of headgate.v1.
type decisionStream struct {
	grpc.ClientStream

	t *testing.T
}

// openStream opens a stream to a server.
func openStream(t *testing.T, conn *grpc.ClientConn) *decisionStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/headgate.v1.Decisions/Stream", grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return &decisionStream{stream, t}
}

func dialServer(t *testing.T, at string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask decides requests for a path, and gives the verdicts.
func (s *decisionStream) ask(path string, n int) (string, error) {
	m := new(headgatev1.DecideRequest)
	for range n {
		m.Requests = append(m.Requests, &headgatev1.Request{Path: path})
	}
	if err := s.SendMsg(m); err != nil {
		return "", err
	}
	out := new(headgatev1.DecideResponse)
	err := s.RecvMsg(out)
	var b strings.Builder
	for _, a := range out.GetAnswers() {
		b.WriteByte("?awd"[a.GetVerdict()])
	}
	return b.String(), err
}

// TestServerStreams tells the life of a stream: it sees a reload, and a drain asks its client to end it.
func TestServerStreams(t *testing.T) {
	t.Parallel()
	settings := "version: 1\nserver: {grpc: '127.0.0.1:0', http: off}\n" + adminAnywhere + "rules: [{name: a, match: {path: /a}, key: [all], limits: [%d/1d]}]\n"
	path := file(t, fmt.Sprintf(settings, 3))
	i := launchServer(t, path)
	s := openStream(t, dialServer(t, i.GRPC))
	if got, err := s.ask("/a", 4); got != "aaad" || err != nil {
		t.Fatal(got, err)
	}
	if err := os.WriteFile(path, []byte(fmt.Sprintf(settings, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new limit on the open stream", func() bool { got, err := s.ask("/a", 1); return got == "a" && err == nil })
	if err := i.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	out := new(headgatev1.DecideResponse)
	if err := s.RecvMsg(out); err != nil || !out.GetDraining() {
		t.Fatalf("the drain sends %v, %v", out, err)
	}
	if got, err := s.ask("/a", 2); got != "ad" || err != nil {
		t.Errorf("a message on its way gets %s, %v", got, err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(out); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
	<-i.ended
	if status := exitStatus(i.status); status != 0 {
		t.Errorf("the exit status is %d\n%s", status, i.text())
	}
}

// TestServerStreamsHandOver restarts the server while streams decide, with the socket handed over. Clients follow the
// request to drain. No message is lost, and the store has counted each request once.
func TestServerStreamsHandOver(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	path := file(t, fmt.Sprintf("version: 1\nstore: redis://%s\nstore_timeout: 20s\ndeny_cache: 0s\nserver: {grpc: systemd, http: off}\n%s"+
		"rules: [{name: a, match: {path: /a}, key: [all], algorithm: fixed_window, limits: [1000000/365d]}]\n", testserver.Start(t).Addr, adminAnywhere))
	now := inheritServer(t, path, socket)
	var asked atomic.Int64
	var working sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		working.Go(func() { askUntil(t, ln.Addr().String(), done, &asked) })
	}
	for range 2 {
		before := asked.Load()
		eventually(t, "decisions", func() bool { return asked.Load() > before+100 })
		next := inheritServer(t, path, socket)
		if err := now.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-now.ended
		if status := exitStatus(now.status); status != 0 {
			t.Errorf("the old process ends with %d\n%s", status, now.text())
		}
		now = next
	}
	close(done)
	working.Wait()
	s := openStream(t, dialServer(t, ln.Addr().String()))
	if err := s.SendMsg(&headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/a"}}}); err != nil {
		t.Fatal(err)
	}
	out := new(headgatev1.DecideResponse)
	if err := s.RecvMsg(out); err != nil {
		t.Fatal(err)
	}
	if counted := 1_000_000 - out.GetAnswers()[0].GetRemaining() - 1; counted != asked.Load() {
		t.Errorf("%d requests were answered, and %d counted", asked.Load(), counted)
	}
}

// askUntil decides requests until done is closed. It opens another stream when the server asks for it.
func askUntil(t *testing.T, at string, done chan struct{}, asked *atomic.Int64) {
	t.Helper()
	conn := dialServer(t, at)
	s := openStream(t, conn)
	m := &headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/a"}, {Path: "/a"}}}
	for {
		select {
		case <-done:
			return
		default:
		}
		if err := s.SendMsg(m); err != nil {
			t.Errorf("send: %v", err)
			return
		}
		for answered := false; !answered; {
			out := new(headgatev1.DecideResponse)
			if err := s.RecvMsg(out); err != nil {
				t.Errorf("receive: %v", err)
				return
			}
			answered = len(out.GetAnswers()) == len(m.GetRequests())
			asked.Add(int64(len(out.GetAnswers())))
			if !out.GetDraining() {
				continue
			}
			if !answered { // The answer to the message on its way follows.
				if err := s.RecvMsg(out); err != nil {
					t.Errorf("receive while draining: %v", err)
					return
				}
				asked.Add(int64(len(out.GetAnswers())))
				answered = true
			}
			if err := s.CloseSend(); err != nil {
				t.Errorf("close: %v", err)
			}
			s = openStream(t, conn)
		}
	}
}
