package front

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// reachable is a parent in memory that can be stopped and started.
type reachable struct {
	mu     sync.Mutex // Guards the field below.
	socket *bufconn.Listener
}

// dial connects to the running parent.
func (p *reachable) dial(ctx context.Context, _ string) (net.Conn, error) {
	p.mu.Lock()
	socket := p.socket
	p.mu.Unlock()
	if socket == nil {
		return nil, errors.New("connection refused")
	}
	return socket.DialContext(ctx)
}

// start runs a parent that accepts streams, until stop is called.
func (p *reachable) start() (stop func()) {
	socket := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{ServiceName: Name, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			err := stream.SendMsg(new(leasev1.ReportResponse))
			<-stream.Context().Done()
			return err
		},
	}}}, p)
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(socket)
		close(ended)
	}()
	p.mu.Lock()
	p.socket = socket
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		p.socket = nil
		p.mu.Unlock()
		server.Stop()
		<-ended
	}
}

// TestReturn: a leaf has a stream again within 75 ms after a lost connection, and within 3 s after the end of a long outage.
func TestReturn(t *testing.T) {
	for outage, within := range map[time.Duration]time.Duration{
		0: 3 * leastPause / 2, time.Second: 3 * mostPause / 2, 20 * time.Minute: 3 * mostPause / 2,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(reachable)
			stop := p.start()
			u := NewUplink(UplinkOptions{
				Servers: []string{"parent:1"}, Credentials: insecure.NewCredentials(), Holder: name("leaf"), Log: slog.New(slog.DiscardHandler), dial: p.dial,
			})
			u.Start(serviceOf(t, Options{State: root()}))
			opens := func() time.Duration {
				begin := time.Now()
				for u.Parent() == "" && time.Since(begin) < time.Hour {
					time.Sleep(time.Millisecond) //nolint:forbidigo // because the bubble of TestReturn has its own time
				}
				synctest.Wait()
				return time.Since(begin)
			}
			opens()
			stop()
			synctest.Wait()
			if u.Parent() != "" {
				t.Error("the stream outlives its parent")
			}
			time.Sleep(outage) //nolint:forbidigo // because the bubble of TestReturn has its own time
			stop = p.start()
			if got := opens(); got > within+2*time.Millisecond {
				t.Errorf("after an outage of %v, the stream is open in %v, want %v", outage, got, within)
			}
			u.Close()
			stop()
		})
	}
}
