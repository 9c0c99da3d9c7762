package acceptance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

const (
	// slots is the bound of requests in flight. slotTTL leaves a second for each renewal, so that a
	// busy machine renews in time.
	slots   = 20
	slotTTL = 3 * time.Second
)

const inFlightConfiguration = `version: 1
store: redis://%s
store_timeout: 2s
max_memory: 16MiB
shutdown_timeout: 1s
log: {decisions: none}
rules:
  - name: reports
    key: [all]
    in_flight: %d
    in_flight_ttl: %s
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// reports is a service that counts its requests in flight. It does not stop when a client leaves.
type reports struct {
	now, most atomic.Int64
	elapsed   time.Duration
}

func (s *reports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most; most = s.most.Load() {
		s.most.CompareAndSwap(most, n)
	}
	if r.Header.Get("Upgrade") != "" {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_, _, _ = conn.Read(context.WithoutCancel(r.Context()))
		return
	}
	<-time.After(s.elapsed)
}

// peak gives the highest number of requests in flight during some time.
func (s *reports) peak(during time.Duration) int64 {
	s.most.Store(s.now.Load())
	<-time.After(during)
	return s.most.Load()
}

// startReports starts processes with one bound on one Redis.
func startReports(t *testing.T, service string, redis string, n int) []*instance {
	t.Helper()
	var all []*instance
	for range n {
		all = append(all, start(t, fmt.Sprintf(inFlightConfiguration, redis, slots, slotTTL), service))
	}
	return all
}

// press sends requests through a process until the test ends, a few at a time.
func press(t *testing.T, i *instance, refused *atomic.Int64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.Proxy+"/", http.NoBody)
				resp, err := client.Do(r)
				if err != nil {
					<-time.After(50 * time.Millisecond)
					continue
				}
				if resp.StatusCode != http.StatusOK {
					refused.Add(1)
					<-time.After(10 * time.Millisecond)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
	}
}

// TestInFlightOverProcesses: eight processes share 20 slots. Three are killed, then Redis loses its data.
// The service never has more requests than the guarantee says, and slots come back within the TTL.
func TestInFlightOverProcesses(t *testing.T) {
	redis, service := testserver.Start(t), &reports{elapsed: 100 * time.Millisecond}
	behind := httptest.NewServer(service)
	t.Cleanup(behind.Close)
	processes := startReports(t, behind.URL, redis.Addr, 8)
	var refused atomic.Int64
	var stops []func()
	for _, i := range processes {
		stops = append(stops, press(t, i, &refused))
	}
	within := func(what string, during time.Duration, least, most int64) {
		t.Helper()
		if n := service.peak(during); n < least || n > most {
			t.Errorf("%s: up to %d requests in flight, want %d to %d", what, n, least, most)
		}
	}
	within("eight processes", slotTTL+time.Second, slots, slots)
	if refused.Load() == 0 {
		t.Error("no request was refused: the processes do not send enough")
	}
	for _, i := range processes[:3] {
		_ = i.command.Process.Kill()
	}
	within("three are killed", slotTTL+time.Second, 1, 2*slots) // The service still does the requests of the dead.
	within("their slots are free", slotTTL, slots, slots)
	redis.Restart()
	within("Redis has lost its data", slotTTL, 0, 2*slots)
	eventually(t, "requests after the restart", func() bool { return service.now.Load() > slots/2 })
	within("after a renewal", slotTTL, slots, slots)
	for _, stop := range stops {
		stop()
	}
	for _, i := range processes[3:] {
		if i.stop() != 0 {
			t.Error("a process did not end well")
		}
	}
}

// TestInFlightWebSockets: WebSockets hold their slots while they are open, through a partition too. Others
// take the slots of a process that is cut off for longer than the TTL. When it is back, its WebSockets
// count again.
func TestInFlightWebSockets(t *testing.T) {
	redis, service := testserver.Start(t), &reports{}
	behind := httptest.NewServer(service)
	t.Cleanup(behind.Close)
	link := network.New(t, redis.Addr)
	cut := startReports(t, behind.URL, link.Addr, 1)[0]
	other := startReports(t, behind.URL, redis.Addr, 1)[0]
	var held []*websocket.Conn
	for range slots {
		held = append(held, connectSocket(t, "ws://"+cut.Proxy+"/", nil))
	}
	if n := service.peak(slotTTL + time.Second); n != slots {
		t.Errorf("%d WebSockets are open, want %d", n, slots)
	}
	refusedBy := func(i *instance) bool {
		resp, err := http.Get("http://" + i.Proxy + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusTooManyRequests && isSpread(resp.Header)
	}
	if !refusedBy(cut) || !refusedBy(other) {
		t.Error("a request passes beside 20 WebSockets")
	}
	_ = held[0].Close(websocket.StatusNormalClosure, "")
	eventually(t, "the slot of a closed WebSocket", func() bool { return !refusedBy(other) })
	link.HalfOpen()
	eventually(t, "the slots of a process that is cut off", func() bool {
		return !refusedBy(other) && metric(t, other, `headgate_rule_in_flight{rule="reports"}`) == 0
	})
	var others []*websocket.Conn
	eventually(t, "as many slots as the cut process had", func() bool {
		conn, _, err := websocket.Dial(t.Context(), "ws://"+other.Proxy+"/", nil) //nolint:bodyclose // There is none to close.
		if err == nil {
			t.Cleanup(func() { conn.CloseNow() })
			others = append(others, conn)
		}
		return len(others) == slots
	})
	link.Heal()
	_ = others[0].Close(websocket.StatusNormalClosure, "")
	eventually(t, "the renewal of the slots", func() bool { return refusedBy(other) })
	for _, conn := range held[1:] {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	eventually(t, "a free slot again", func() bool { return !refusedBy(cut) && !refusedBy(other) })
}
