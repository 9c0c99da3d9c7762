package acceptance

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/internal/testkit/process"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	headgatev1 "github.com/headgate/headgate/proto/headgate/v1"
)

// pipelining is the number of goroutines that a connection to Redis gets when decisions first wait for it together.
const pipelining = 2

// failureFleet is three servers on one Redis.
type failureFleet struct {
	t          *testing.T
	servers    []*instance
	goroutines []float64        // of each server without a client
	probes     map[string]int64 // units that counted has taken
	dead       int              // the server that was killed; -1 is none
}

func startFailureFleet(t *testing.T) *failureFleet {
	t.Helper()
	f := &failureFleet{t: t, probes: map[string]int64{}, dead: -1}
	path := file(t, fmt.Sprintf(failureServer, testserver.Start(t).Addr)+failureRules(fewUnits)+adminAnywhere)
	for range 3 {
		f.servers = append(f.servers, launchServer(t, path))
	}
	for n, i := range f.servers {
		f.countedBy(n, "/many") // It connects the server to Redis.
		f.goroutines = append(f.goroutines, metric(t, i, "go_goroutines")+pipelining)
	}
	return f
}

func (f *failureFleet) addresses() (all []string) {
	for _, i := range f.servers {
		all = append(all, i.GRPC)
	}
	return all
}

// counted is the number of units of a path in Redis, without those of this method.
func (f *failureFleet) counted(path string) int64 {
	f.t.Helper()
	return f.countedBy((f.dead+1)%len(f.servers), path)
}

func (f *failureFleet) countedBy(server int, path string) int64 {
	f.t.Helper()
	conn := dialServer(f.t, f.servers[server].GRPC)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	in, out := &headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: path}}}, new(headgatev1.DecideResponse)
	if err := conn.Invoke(ctx, "/headgate.v1.Decisions/Decide", in, out, grpc.WaitForReady(true)); err != nil {
		f.t.Fatal(err)
	}
	f.probes[path]++
	return uncounted - out.GetAnswers()[0].GetRemaining() - f.probes[path]
}

// busy is a server with a stream of a client.
func (f *failureFleet) busy() int {
	f.t.Helper()
	for n, i := range f.servers {
		if metric(f.t, i, "headgate_server_streams") > 0 {
			return n
		}
	}
	f.t.Fatal("no server has a stream")
	return 0
}

// judge ends a run. Redis may have up to inFlight more units than callers got.
func (f *failureFleet) judge(r *failureRun, inFlight int64) {
	f.t.Helper()
	r.end()
	ended := time.Now()
	sum, counted := r.sum(), f.counted("/many")
	for counted > sum.many+inFlight && time.Since(ended) < patience { // What leavers give back is on its way.
		<-time.After(10 * time.Millisecond)
		counted = f.counted("/many")
	}
	for _, k := range r.all {
		k.close()
	}
	counted, sum = f.counted("/many"), r.sum()
	f.t.Logf("%d calls: %d answers of servers, %d fallbacks, %d left; %d given back, %d streams ended; "+
		"Redis has %d units more than callers got, want at most %d; the longest call took %v",
		r.calls.Load(), sum.many+sum.few+sum.refused, sum.local+sum.localFew, sum.left, sum.returned, sum.switches,
		counted-sum.many, inFlight, time.Duration(r.longest.Load()).Round(time.Millisecond))
	answers := sum.many + sum.few + sum.refused
	if ends := answers + sum.local + sum.localFew + sum.left; ends != r.calls.Load() || sum.decided != answers {
		f.t.Errorf("%d calls have %d ends: %+v", r.calls.Load(), ends, sum)
	}
	if counted < sum.many || counted > sum.many+inFlight {
		f.t.Errorf("callers got %d units, and Redis has %d, want at most %d more", sum.many, counted, inFlight)
	}
	if sum.few > fewUnits {
		f.t.Errorf("servers allow %d units of %d", sum.few, fewUnits)
	}
	for _, k := range r.all {
		if n := k.localFew.Load(); n > localUnits {
			f.t.Errorf("the fallback of a client allows %d units, want its part, %d", n, localUnits)
		}
	}
	f.noneLeft()
}

// noneLeft waits until no goroutine of a client is left, and the servers have as many as before.
func (f *failureFleet) noneLeft() {
	f.t.Helper()
	all := make([]byte, 16<<20)
	eventually(f.t, "the end of the clients' goroutines", func() bool {
		text := string(all[:runtime.Stack(all, true)])
		return !strings.Contains(text, "headgate/client.") && !strings.Contains(text, "grpc/internal/transport.")
	})
	for n, i := range f.servers {
		if n == f.dead {
			continue
		}
		now := 0.0
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if now = metric(f.t, i, "go_goroutines"); now <= f.goroutines[n] {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		if now > f.goroutines[n] {
			f.t.Errorf("server %d has %v goroutines, without clients %v", n, now, f.goroutines[n])
		}
	}
}

// TestClientFailures has few decisions in two scenes. TestSoakClientFailures has 100,000 in each scene.
func TestClientFailures(t *testing.T) { //nolint:paralleltest // It looks for goroutines that are left.
	const decisions = 1000
	t.Run("a server is killed", func(t *testing.T) { serverDies(t, decisions) })
	t.Run("streams are never read", func(t *testing.T) { neverRead(t, decisions) })
}

// clientsLeave lets callers leave at any time, and a whole client in the middle.
func clientsLeave(t *testing.T, decisions int64) {
	t.Helper()
	f := startFailureFleet(t)
	c := failureCallers{decisions: decisions, count: 64, clients: 4, timeout: patience, leaves: 2 * time.Millisecond}
	r := c.begin(t, f.addresses())
	r.await(0.5)
	if err := r.replace(0).Close(); err != nil {
		t.Error(err)
	}
	// The client that leaves has two messages in flight, and what its callers give back.
	f.judge(r, 4*int64(c.count/c.clients))
	if sum := r.sum(); sum.left == 0 || sum.returned == 0 {
		t.Errorf("no caller left before its answer: %+v", sum)
	}
}

// serverDies kills a server while messages are on their way. Each caller has one call, so at most so many are lost.
func serverDies(t *testing.T, decisions int64) {
	t.Helper()
	f := startFailureFleet(t)
	c := failureCallers{decisions: decisions, count: 64, clients: 6, timeout: patience}
	r := c.begin(t, f.addresses())
	r.await(0.1)
	f.dead = f.busy()
	r.await(0.5)
	if err := f.servers[f.dead].command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.judge(r, int64(c.count))
	sum := r.sum()
	if lost := sum.local + sum.localFew; lost > int64(c.count) {
		t.Errorf("%d calls get the fallback, with %d on their way and two servers at hand", lost, c.count)
	}
	alone := newFailureClient(t, []string{f.servers[f.dead].GRPC}, c.timeout)
	for range 3 * localUnits {
		if answered, err := alone.ask(t.Context(), "/few"); answered || err != nil {
			t.Fatalf("the killed server answers: %t, %v", answered, err)
		}
	}
	if n := alone.localFew.Load(); n != localUnits {
		t.Errorf("the fallback of a client without a server allows %d units, want its part, %d", n, localUnits)
	}
}

// oneIsSlow stops a server for some time, and then delays another one by more than the timeout.
func oneIsSlow(t *testing.T, decisions int64) {
	t.Helper()
	f := startFailureFleet(t)
	var links []*network.Link
	var at []string
	for _, i := range f.servers {
		links = append(links, network.New(t, i.GRPC))
		at = append(at, links[len(links)-1].Addr)
	}
	c := failureCallers{decisions: decisions, count: 64, clients: 6, timeout: 50 * time.Millisecond}
	r := c.begin(t, at)
	r.await(0.2)
	stopped := f.busy()
	server := f.servers[stopped].command.Process
	_ = server.Signal(process.Pause)
	process.AwaitStop(server.Pid)
	r.await(0.5)
	_ = server.Signal(process.Resume)
	before := r.sum()
	link := links[f.busy()]
	link.Latency(30*time.Millisecond, 30*time.Millisecond, 0)
	began := time.Now()
	r.await(0.8)
	link.Heal()
	after := r.sum()
	t.Logf("a server that is %v late for %v costs %d calls of %d the timeout", 60*time.Millisecond, time.Since(began).Round(time.Millisecond),
		after.local+after.localFew-before.local-before.localFew, decisions*3/10)
	r.end()
	// A stream that is given up has two messages in flight, each with the callers of one client at most. One that
	// has answered nothing is not among the switches.
	f.judge(r, (r.sum().switches+int64(c.clients))*2*int64(c.count/c.clients+1))
}

// unreadEach is the number of requests in each message of a stream that no client reads, and unreadWindow how much of the
// answers its client takes. gRPC keeps as much again in the server.
const unreadEach, unreadWindow = 100, 64 << 10

// sendUnread sends messages on a stream that no client reads, and gives their number when ctx ends.
func sendUnread(ctx context.Context, t *testing.T, at string) chan int {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(unreadWindow), grpc.WithStaticConnWindowSize(unreadWindow))
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/headgate.v1.Decisions/Stream", grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	m, sent := new(headgatev1.DecideRequest), make(chan int, 1)
	for range unreadEach {
		m.Requests = append(m.Requests, &headgatev1.Request{Path: "/unread"})
	}
	go func() {
		defer conn.Close()
		messages := 0
		for s.SendMsg(m) == nil {
			messages++
		}
		sent <- messages
	}()
	return sent
}

// neverRead sends on streams that no client reads, beside callers.
func neverRead(t *testing.T, decisions int64) {
	t.Helper()
	f := startFailureFleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var senders []chan int
	for _, i := range f.servers {
		senders = append(senders, sendUnread(ctx, t, i.GRPC))
	}
	c := failureCallers{decisions: decisions, count: 64, clients: 6, timeout: patience}
	r := c.begin(t, f.addresses())
	r.end()
	var memory int64
	for _, i := range f.servers {
		memory = max(memory, peak(t, i.command.Process.Pid))
	}
	first := f.counted("/unread")
	<-time.After(50 * time.Millisecond)
	if second := f.counted("/unread"); second != first {
		t.Errorf("servers go on to read streams that no client reads: %d units, then %d", first, second)
	}
	cancel()
	messages := 0
	for _, sent := range senders {
		messages += <-sent
	}
	unread := f.counted("/unread")
	answer := proto.Size(&headgatev1.Answer{
		Verdict: 1, Policy: "unread", Reason: "within_limit", Limit: uncounted, Remaining: uncounted, Count: uncounted,
		Period: durationpb.New(time.Hour), ResetAfter: durationpb.New(time.Hour),
	})
	most := int64(len(f.servers)) * (64 + 2*unreadWindow/int64(unreadEach*answer) + 2)
	t.Logf("%d messages of %d were sent and never read; %d were decided, want at most %d; the peak memory of a server is %d MiB",
		messages, unreadEach, unread/unreadEach, most, memory>>20)
	if memory > 256<<20 {
		t.Errorf("a server uses %d MiB", memory>>20)
	}
	if unread > most*unreadEach || unread%unreadEach != 0 {
		t.Errorf("%d units for answers that no client reads, want at most %d", unread, most*unreadEach)
	}
	f.judge(r, 0)
	if sum := r.sum(); sum.local+sum.localFew != 0 {
		t.Errorf("beside a stream that no client reads, %d callers get the fallback", sum.local+sum.localFew)
	}
}
