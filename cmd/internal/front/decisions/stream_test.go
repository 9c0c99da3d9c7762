package decisions

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/redis"
)

const fivePerDay = "rules: [{name: five, match: {path: /five}, key: [all], limits: [5/1d]}, {name: many, match: {path: /many}, key: [all], limits: [1000000/1d]}]"

// onStores runs a test with a store in memory, and with Redis, where messages are decided together.
func onStores(t *testing.T, rules string, test func(*testing.T, *running)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, serve(t, guards.New(t, rules), Options{})) })
	t.Run("Redis", func(t *testing.T) {
		server := redis.Start(t)
		g := guards.New(t, "store: redis://"+server.Addr+"\nstore_timeout: 20s\ndeny_cache: 0s\n"+rules)
		test(t, serve(t, g, Options{Shared: true}))
	})
}

func verdicts(m *headgatev1.DecideResponse) string {
	var b strings.Builder
	for _, a := range m.GetAnswers() {
		b.WriteByte("?awd"[a.GetVerdict()])
	}
	return b.String()
}

// TestStream: messages are answered in order, and what they took can be given back, once.
func TestStream(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		c := r.open(t)
		ask := func(returns []*headgatev1.Return, paths ...string) string {
			c.send(&headgatev1.DecideRequest{Requests: requestsFor(paths...), Returns: returns})
			return verdicts(c.receive())
		}
		giveBack := func(message uint64, indexes ...uint32) []*headgatev1.Return {
			return []*headgatev1.Return{{Message: message, Indexes: indexes}}
		}
		for i, step := range []struct {
			returns []*headgatev1.Return
			paths   string
			want    string
		}{
			{nil, "/five /five /none /five", "aaaa"},
			{nil, "/five /five /five", "aad"},
			{giveBack(0, 1, 2), "/five /five", "ad"}, // One unit came back: /none took nothing.
			{giveBack(0, 1), "/five", "d"},           // It came back already.
			{giveBack(1, 2), "/five", "d"},           // A refusal took nothing.
			{giveBack(99, 0), "/five", "d"},          // A message that does not exist.
			{giveBack(1, 77), "/five", "d"},          // A request that does not exist.
			{giveBack(6, 0), "/five", "d"},           // The message itself.
			{giveBack(1, 0, 1, 0), "/five /five /five", "aad"},
		} {
			if got := ask(step.returns, strings.Fields(step.paths)...); got != step.want {
				t.Errorf("step %d: got %s, want %s", i, got, step.want)
			}
		}
		// A message with returns alone has no response and no number.
		c.send(&headgatev1.DecideRequest{Returns: giveBack(8, 0)})
		until(t, "the return", func() bool { return r.Stats().Returned == 4 })
		if got := ask(nil, "/five", "/five"); got != "ad" {
			t.Errorf("after a message with returns alone: %s", got)
		}
		if got := ask(giveBack(9, 0), "/five", "/five"); got != "ad" {
			t.Errorf("after the return of its follower: %s", got)
		}
		if s := r.Stats(); s.Streams != 1 || s.Returned != 5 || s.Unknown != 7 {
			t.Errorf("got %+v", s)
		}
		if err := c.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := c.stream.RecvMsg(new(headgatev1.DecideResponse)); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ends with %v", err)
		}
		if s := r.Stats(); s.Streams != 0 || s.Receipts != 0 {
			t.Errorf("after the end: %+v", s)
		}
	})
}

// TestForeignReturns: another stream cannot give back what the requests of this one took.
func TestForeignReturns(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		one, other := r.open(t), r.open(t)
		one.send(&headgatev1.DecideRequest{Requests: requestsFor("/five", "/five", "/five", "/five", "/five")})
		one.receive()
		for message := range uint64(3) {
			other.send(&headgatev1.DecideRequest{
				Requests: requestsFor("/five"), Returns: []*headgatev1.Return{{Message: message, Indexes: []uint32{0, 1, 2, 3, 4}}},
			})
			if got := verdicts(other.receive()); got != "d" {
				t.Fatalf("message %d: got %s", message, got)
			}
		}
	})
}

// TestStreamFaults: an invalid message ends its stream, and says why.
func TestStreamFaults(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		for want, message := range map[string]*headgatev1.DecideRequest{
			"no request and gives nothing back": {},
			"1001 requests: send at most 1000":  {Requests: make([]*headgatev1.Request, 1001)},
			"gives back more than 4096":         {Returns: []*headgatev1.Return{{Indexes: make([]uint32, 4097)}}},
		} {
			c := r.open(t)
			c.send(message)
			if err := c.stream.RecvMsg(new(headgatev1.DecideResponse)); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	})
}

// TestPipeline sends messages without waiting. Their answers are in order, and no unit is lost.
func TestPipeline(t *testing.T) {
	onStores(t, "rules: [{name: a, match: {path: /a}, key: [all], limits: [1500/1d]}, {name: b, match: {path: /b/*}, key: [path], limits: [1/1d]}]",
		func(t *testing.T, r *running) {
			t.Helper()
			c, allowed := r.open(t), 0
			var reading sync.WaitGroup
			reading.Go(func() {
				for i := range 1000 {
					m := c.receive()
					if len(m.GetAnswers()) != 3+i%5 || m.GetAnswers()[0].GetPolicy() != "b" {
						t.Errorf("response %d has %d answers", i, len(m.GetAnswers()))
						return
					}
					allowed += strings.Count(verdicts(m)[1:], "a")
				}
			})
			for i := range 1000 {
				requests := requestsFor(fmt.Sprint("/b/", i), "/a", "/a")
				for range i % 5 {
					requests = append(requests, requestsFor("/a")...)
				}
				c.send(&headgatev1.DecideRequest{Requests: requests})
			}
			reading.Wait()
			if allowed != 1500 {
				t.Errorf("%d requests pass, want 1500", allowed)
			}
		})
}

// TestDrain: a drain asks the client to end the stream, and answers messages that are on their way.
func TestDrain(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		idle, busy := r.open(t), r.open(t)
		for _, c := range []*client{idle, busy} {
			c.send(&headgatev1.DecideRequest{Requests: requestsFor("/many")})
			c.receive()
		}
		r.Drain()
		if m := idle.receive(); !m.GetDraining() || len(m.GetAnswers()) != 0 {
			t.Errorf("an idle stream gets %v", m)
		}
		busy.send(&headgatev1.DecideRequest{Requests: requestsFor("/many", "/many")})
		answered, asked := 0, 0
		for range 2 {
			m := busy.receive()
			answered += len(m.GetAnswers())
			if m.GetDraining() {
				asked++
			}
		}
		if answered != 2 || asked != 1 {
			t.Errorf("%d answers and %d draining", answered, asked)
		}
		late := r.open(t)
		if m := late.receive(); !m.GetDraining() {
			t.Errorf("a stream that opens during the drain gets %v", m)
		}
	})
}

// TestMaxAge: an old stream is asked to end.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	r := serve(t, guards.New(t, fivePerDay), Options{MaxAge: 10 * time.Millisecond})
	if m := r.open(t).receive(); !m.GetDraining() {
		t.Errorf("got %v", m)
	}
}

// TestClientThatDoesNotRead: the server stops to read, and holds little. Other streams are served.
func TestClientThatDoesNotRead(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		deaf := r.open(t)
		full := &headgatev1.DecideRequest{Requests: requestsFor(make([]string, 1000)...)}
		sent := make(chan int, 1)
		go func() {
			n := 0
			for deaf.stream.SendMsg(full) == nil {
				n++
			}
			sent <- n
		}()
		var before uint64
		until(t, "the server to stop reading", func() bool {
			after := r.Stats().Messages
			stands := after > 0 && after == before
			before = after
			<-time.After(300 * time.Millisecond)
			return stands
		})
		// On a busy machine the server may stand still before it waits for the client.
		until(t, "messages that wait for their client and take no requests from other streams", func() bool {
			free := r.pending.TryAcquire(maxPending)
			if free {
				r.pending.Release(maxPending)
			}
			return free
		})
		if n := r.Stats().Messages; n > maxUnanswered+20 { // Some responses are in the buffers of the connection.
			t.Errorf("%d messages are decided for a client that reads nothing", n)
		}
		other := r.open(t)
		other.send(&headgatev1.DecideRequest{Requests: requestsFor("/five")})
		if got := verdicts(other.receive()); got != "a" {
			t.Errorf("another stream gets %s", got)
		}
		deaf.cancel()
		if n := <-sent; n > 2*maxUnanswered+100 {
			t.Errorf("the client has sent %d messages", n)
		}
		until(t, "the stream to end", func() bool { return r.Stats().Streams == 1 && r.Stats().Receipts <= 1 })
	})
}

// TestUnreadShortAnswersCount: many short answers that a client does not read count, and nothing after the end.
func TestUnreadShortAnswersCount(t *testing.T) {
	onStores(t, fivePerDay, func(t *testing.T, r *running) {
		t.Helper()
		deaf := r.open(t)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			var err error
			for err == nil {
				err = deaf.stream.SendMsg(&headgatev1.DecideRequest{Requests: requestsFor("/none")})
			}
		}()
		until(t, "the answers to count", func() bool { return r.server.Stats().CallMemory > 1000*256 })
		deaf.cancel()
		<-sent
		until(t, "the return of all memory", func() bool {
			runtime.GC()
			return r.server.Stats().CallMemory == 0
		})
	})
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > patience {
			t.Fatal("no sign of " + what)
		}
		<-time.After(10 * time.Millisecond)
	}
}
