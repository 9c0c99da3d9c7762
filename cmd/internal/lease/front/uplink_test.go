package front

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// leaf serves a leaf below some parents.
func leaf(t *testing.T, token func() (string, error), parents ...string) (*running, *Uplink) {
	t.Helper()
	u := NewUplink(UplinkOptions{
		Servers: parents, Credentials: insecure.NewCredentials(), Token: token, Holder: HolderOf("secret", "leaf"), Log: slog.New(slog.DiscardHandler),
	})
	config := root()
	config.Resources, config.Child = nil, true
	config.Lease = 15 * time.Second
	r := serve(t, Options{State: config, Up: u.Up})
	u.Start(r.Service)
	t.Cleanup(u.Close)
	return r, u
}

// TestTree: a holder of a leaf has a part of the capacity of the root, and a refusal has the words of the root.
func TestTree(t *testing.T) {
	top := serve(t, Options{State: root()})
	bottom, u := leaf(t, nil, "127.0.0.1:1", top.at) // Nothing listens on the first one.
	until(t, "the stream", func() bool { return u.Parent() == top.at })
	direct := top.open(t)
	direct.send(claims("direct", 1, 30_000, "db/orders"))
	direct.receive()
	below := bottom.open(t)
	below.send(claims("web", 1, 90_000, "db/orders", "queue/mail"))
	var got int64
	var refused string
	for got < 70_000 || refused == "" {
		m := below.receive()
		for _, l := range m.GetLeases() {
			got = max(got, l.GetAmount())
		}
		for _, r := range m.GetRefusals() {
			refused = r.GetText()
		}
	}
	if got != 70_000 || !strings.Contains(refused, `add {match: "queue/*"`) {
		t.Errorf("the holder of the leaf has %d, and %q", got, refused)
	}
	if s := u.Stats(); s.Opened != 1 || s.Sent == 0 {
		t.Errorf("counted %+v", s)
	}
}

// parents is a scripted server of Leases. It answers each stream with a message, and then waits for its end.
type parents struct {
	at      string
	message *leasev1.ReportResponse
	tokens  chan string
}

func script(t *testing.T, m *leasev1.ReportResponse) *parents {
	t.Helper()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &parents{at: socket.Addr().String(), message: m, tokens: make(chan string, 100)}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{ServiceName: Name, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			select {
			case p.tokens <- strings.Join(metadata.ValueFromIncomingContext(stream.Context(), "authorization"), ","):
			default:
			}
			if err := stream.SendMsg(p.message); err != nil {
				return err
			}
			<-stream.Context().Done()
			return nil
		},
	}}}, p)
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(socket)
		close(ended)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return p
}

// TestMaster: a leaf follows a redirect to the master. The token is read for each stream.
func TestMaster(t *testing.T) {
	master := script(t, new(leasev1.ReportResponse))
	follower := script(t, &leasev1.ReportResponse{Master: master.at})
	tokens := []string{"one", "two", "two"}
	_, u := leaf(t, func() (string, error) {
		next := tokens[0]
		tokens = tokens[1:]
		return next, nil
	}, follower.at, master.at)
	if first, second := <-follower.tokens, <-master.tokens; first != "Bearer one" || second != "Bearer two" {
		t.Errorf("the tokens are %q and %q", first, second)
	}
	until(t, "the stream to the master", func() bool { return u.Parent() == master.at })
}

// TestForeignMaster: a master that is not in lease.servers gets neither a stream nor the token. The next server is used.
func TestForeignMaster(t *testing.T) {
	foreign, second := script(t, new(leasev1.ReportResponse)), script(t, new(leasev1.ReportResponse))
	first := script(t, &leasev1.ReportResponse{Master: foreign.at})
	_, u := leaf(t, func() (string, error) { return "secret", nil }, first.at, second.at)
	until(t, "the stream to the second server", func() bool { return u.Parent() == second.at })
	if len(first.tokens) != 1 || len(foreign.tokens) != 0 {
		t.Errorf("%d streams to the first server, and %d to the foreign one", len(first.tokens), len(foreign.tokens))
	}
}

// TestRedirectsInACircle and a parent that drains: the leaf opens other streams, with a pause.
func TestRedirectsInACircle(t *testing.T) {
	draining := script(t, &leasev1.ReportResponse{Draining: true})
	circle := script(t, nil)
	circle.message = &leasev1.ReportResponse{Master: circle.at}
	leaf(t, nil, circle.at, draining.at)
	for range maxRedirects + 2 {
		<-circle.tokens
	}
	<-draining.tokens
	<-circle.tokens
}

// TestNoToken: without a token, no stream is opened, and reports are dropped.
func TestNoToken(t *testing.T) {
	p := script(t, new(leasev1.ReportResponse))
	tried := make(chan struct{}, 100)
	bottom, u := leaf(t, func() (string, error) {
		tried <- struct{}{}
		return "", errors.New("the file has no token")
	}, p.at)
	<-tried
	<-tried
	bottom.open(t).send(claims("web", 1, 1000, "db/orders"))
	until(t, "a dropped report", func() bool { return u.Stats().Dropped > 0 })
	if u.Parent() != "" || len(p.tokens) != 0 {
		t.Errorf("the parent is %q", u.Parent())
	}
}

// TestHolderOf: a server keeps its name if it has a token and an instance. Servers with one token have different names.
func TestHolderOf(t *testing.T) {
	if again := HolderOf("secret", "a"); again != HolderOf("secret", "a") {
		t.Errorf("the name %q changes", again)
	}
	names := map[string]bool{}
	for _, pair := range [][2]string{{"secret", "a"}, {"secret", "b"}, {"other", "a"}, {"", "a"}, {"", "a"}, {"secret", ""}, {"secret", ""}} {
		name := HolderOf(pair[0], pair[1])
		if names[name] || len(name) < leastHolder {
			t.Errorf("%v: the name %q is short, or there twice", pair, name)
		}
		names[name] = true
	}
}

// TestSilentParent: a parent that takes connections and says nothing is named in the log, with the time.
func TestSilentParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		u := NewUplink(UplinkOptions{
			Servers: []string{"parent:1"}, Credentials: insecure.NewCredentials(), Holder: name("leaf"), Log: slog.New(slog.NewTextHandler(&log, nil)),
			dial: func(context.Context, string) (net.Conn, error) {
				here, there := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, there) }()
				return here, nil
			},
		})
		config := root()
		config.Resources, config.Child = nil, true
		u.Start(serviceOf(t, Options{State: config, Up: u.Up}))
		time.Sleep(6 * time.Second) //nolint:forbidigo // In a bubble of synctest.
		if u.Close(); !strings.Contains(log.String(), "did not accept the stream within 5s") {
			t.Error(log.String())
		}
	})
}
