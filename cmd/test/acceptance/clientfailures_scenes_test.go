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

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/internal/testkit/process"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// pipelining is the number of goroutines that a connection to Redis gets when decisions first wait for it together.
const pipelining = 2

// failureFleet is three servers on one Redis, each through a link of its own.
type failureFleet struct {
	t          *testing.T
	servers    []*instance
	stores     []*network.Link
	goroutines []float64        // of each server without a client
	probes     map[string]int64 // units that counted has taken
	dead       int              // the server that was killed; -1 is none
}

func startFailureFleet(t *testing.T) *failureFleet {
	t.Helper()
	f, store := &failureFleet{t: t, probes: map[string]int64{}, dead: -1}, testserver.Start(t)
	for n := range 3 {
		link := network.New(t, store.Addr)
		f.stores = append(f.stores, link)
		f.servers = append(f.servers, launchServer(t, file(t, fmt.Sprintf(failureServer, link.Addr)+failureRules(fewUnits)+adminAnywhere)))
		f.countedBy(n, manyPath(0)) // It connects the server to Redis.
		f.goroutines = append(f.goroutines, metric(t, f.servers[n], "go_goroutines")+pipelining)
	}
	return f
}

func (f *failureFleet) addresses() (all []string) {
	for _, i := range f.servers {
		all = append(all, i.GRPC)
	}
	return all
}

// counted is the number of units of each path in Redis, without those of this method.
func (f *failureFleet) counted(paths ...string) []int64 {
	f.t.Helper()
	return f.countedBy((f.dead+1)%len(f.servers), paths...)
}

func (f *failureFleet) countedBy(server int, paths ...string) (all []int64) {
	f.t.Helper()
	conn := dialServer(f.t, f.servers[server].GRPC)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	in, out := new(headgatev1.DecideRequest), new(headgatev1.DecideResponse)
	for _, path := range paths {
		in.Requests = append(in.Requests, &headgatev1.Request{Path: path})
	}
	if err := conn.Invoke(ctx, "/headgate.v1.Decisions/Decide", in, out, grpc.WaitForReady(true)); err != nil {
		f.t.Fatal(err)
	}
	for n, path := range paths {
		f.probes[path]++
		all = append(all, uncounted-out.GetAnswers()[n].GetRemaining()-f.probes[path])
	}
	return all
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

// judge ends a run. Redis may have up to inFlight more units than callers got, and up to each for one caller. It
// gives the number of these units.
func (f *failureFleet) judge(r *failureRun, inFlight, each int64) (more int64) {
	f.t.Helper()
	r.end()
	for ended := time.Now(); f.more(r) > inFlight && time.Since(ended) < patience; { // What leavers give back is on its way.
		<-time.After(10 * time.Millisecond)
	}
	for _, k := range r.all {
		k.close()
	}
	more = f.more(r)
	sum := r.sum()
	f.t.Logf("%d calls: %d answers of servers, %d fallbacks, %d left; %d given back, %d streams ended; "+
		"Redis has %d units more than callers got, want at most %d; the longest call took %v",
		r.calls.Load(), sum.answers(), sum.local+sum.localFew, sum.left, sum.returned, sum.switches,
		more, inFlight, time.Duration(r.longest.Load()).Round(time.Millisecond))
	if ends := sum.answers() + sum.local + sum.localFew + sum.left; ends != r.calls.Load() || sum.decided != sum.answers() {
		f.t.Errorf("%d calls have %d ends: %+v", r.calls.Load(), ends, sum)
	}
	if more > inFlight {
		f.t.Errorf("Redis has %d units more than callers got, want at most %d", more, inFlight)
	}
	for caller, counted := range f.counted(r.paths()...) {
		if got := r.got[caller].Load(); counted < got || counted > got+each {
			f.t.Errorf("caller %d got %d units, and Redis has %d, want at most %d more", caller, got, counted, each)
		}
	}
	f.judgeShares(r)
	f.noneLeft()
	return more
}

// more is the number of units that Redis has and callers did not get.
func (f *failureFleet) more(r *failureRun) (more int64) {
	f.t.Helper()
	for _, counted := range f.counted(r.paths()...) {
		more += counted
	}
	return more - r.sum().many
}

// judgeShares checks that nothing allows more than its part of the small limit.
func (f *failureFleet) judgeShares(r *failureRun) {
	f.t.Helper()
	for key, n := range r.sum().few {
		if n > fewUnits {
			f.t.Errorf("servers allow %d units of %d under key %d", n, fewUnits, key)
		}
	}
	for _, k := range r.all {
		for key := range fewKeys {
			if n := k.localFew[key].Load(); n > localUnits {
				f.t.Errorf("the fallback of a client allows %d units under key %d, want its part, %d", n, key, localUnits)
			}
		}
	}
}

// killInMessage kills the server dead in the middle of a message: Redis has counted its requests, and the server
// waits for the answer, which does not come.
func (f *failureFleet) killInMessage(r *failureRun) {
	f.t.Helper()
	store := f.stores[f.dead]
	store.NoAnswers()
	eventually(f.t, "an answer of Redis that does not come", func() bool { return store.Keeping() > 0 })
	const often = 20
	same, before := make([]int, len(r.got)), make([]int64, len(r.got))
	eventually(f.t, "a caller whose units Redis has counted", func() bool {
		for caller, counted := range f.counted(r.paths()...) {
			got := r.got[caller].Load()
			if got != before[caller] || counted <= got {
				same[caller] = 0
			}
			before[caller] = got
			if same[caller]++; same[caller] == often { // Its answer is not merely on its way from another server.
				return true
			}
		}
		return false
	})
	if err := f.servers[f.dead].command.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
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
	inFlight := 4 * int64(c.count/c.clients)
	f.judge(r, inFlight, inFlight)
	if sum := r.sum(); sum.left == 0 || sum.returned == 0 {
		t.Errorf("no caller left before its answer: %+v", sum)
	}
}

// serverDies kills a server in the middle of a message. Each caller has one call, so at most so many are lost.
func serverDies(t *testing.T, decisions int64) {
	t.Helper()
	f := startFailureFleet(t)
	c := failureCallers{decisions: decisions, count: 64, clients: 6, timeout: patience}
	r := c.begin(t, f.addresses())
	r.await(0.1)
	f.dead = f.busy()
	r.await(0.5)
	f.killInMessage(r)
	if more := f.judge(r, int64(c.count), 1); more == 0 {
		t.Error("no unit is lost: the server was not killed in the middle of a message")
	}
	sum := r.sum()
	if lost := sum.local + sum.localFew; lost > int64(c.count) {
		t.Errorf("%d calls get the fallback, with %d on their way and two servers at hand", lost, c.count)
	}
	alone := newFailureClient(t, []string{f.servers[f.dead].GRPC}, c.timeout)
	for range 3 * localUnits {
		if answered, err := alone.ask(t.Context(), fewPath(0), 0); answered || err != nil {
			t.Fatalf("the killed server answers: %t, %v", answered, err)
		}
	}
	if n := alone.localFew[0].Load(); n != localUnits {
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
	inFlight := (r.sum().switches + int64(c.clients)) * 2 * int64(c.count/c.clients+1)
	f.judge(r, inFlight, inFlight)
}

// unreadPath is the path of requests on streams that no client reads.
const unreadPath = "/unread/a"

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
		m.Requests = append(m.Requests, &headgatev1.Request{Path: unreadPath})
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
	first := f.counted(unreadPath)[0]
	<-time.After(50 * time.Millisecond)
	if second := f.counted(unreadPath)[0]; second != first {
		t.Errorf("servers go on to read streams that no client reads: %d units, then %d", first, second)
	}
	cancel()
	messages := 0
	for _, sent := range senders {
		messages += <-sent
	}
	unread := f.counted(unreadPath)[0]
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
	f.judge(r, 0, 0)
	if sum := r.sum(); sum.local+sum.localFew != 0 {
		t.Errorf("beside a stream that no client reads, %d callers get the fallback", sum.local+sum.localFew)
	}
}
