package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

const topic, group, letters = "onedari", "senders", "onedari-dead"

// bed is a broker with events, and a record of the calls to the provider.
type bed struct {
	ledger

	t       *testing.T
	cluster *kfake.Cluster
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// newBed starts a broker on loopback.
func newBed(t *testing.T, partitions int32, events int) *bed {
	t.Helper()
	return fillBed(t, partitions, events, new(net.Dialer).DialContext)
}

// bubble runs a test with a fake clock and a broker in memory. bubble supports one sender
// only: during a rebalance of several senders the client waits for a lock, which stops the
// clock of the bubble.
func bubble(t *testing.T, partitions int32, events int, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network kfake.VirtualNetwork
		test(fillBed(t, partitions, events, network.DialContext, kfake.ListenFn(network.Listen), kfake.Ports(9092)))
	})
}

func fillBed(t *testing.T, partitions int32, events int, dial func(context.Context, string, string) (net.Conn, error),
	opts ...kfake.Opt,
) *bed {
	t.Helper()
	cluster, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second),
		kfake.SeedTopics(partitions, topic), kfake.SeedTopics(1, letters))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	b := &bed{t: t, cluster: cluster, dial: dial, ledger: newLedger(events)}
	b.produce(0, events, func(id int) int32 { return int32(id) % partitions })
	return b
}

// produce writes events to partitions.
func (b *bed) produce(from, to int, partition func(id int) int32) {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.Dialer(b.dial), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	for id := from; id < to; id++ {
		client.Produce(b.t.Context(), &kgo.Record{
			Topic: topic, Partition: partition(id),
			Key: []byte(strconv.Itoa(id)), Value: fmt.Appendf(nil, `{"event":%d}`, id),
		}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.t.Error(err)
			}
		})
	}
	if err := client.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// config returns the Config of a sender that may use the limit alone.
func (b *bed) config(t *testing.T, limit int64) Config {
	t.Helper()
	return Config{
		Options: []kgo.Opt{
			kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.Dialer(b.dial),
			// The short times let the group notice new and lost members soon.
			kgo.HeartbeatInterval(100 * time.Millisecond), kgo.SessionTimeout(2 * time.Second),
		},
		Topic: topic, Group: group,
		Pacer: newPacer(t, limit), Call: b.call, Logger: quiet(),
	}
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func quiet() *slog.Logger { return logTo(io.Discard) }

func newPacer(t *testing.T, limit int64) *pace.Pacer {
	t.Helper()
	plan, err := pace.EvenPlan(limit, time.Second, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pace.New(pace.Config{Provider: "test", Source: pace.Static(plan), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// tap is a source for one instance. The test sets its limit.
type tap struct{ limits chan int64 }

func (s tap) Follow(ctx context.Context, to pace.Receiver) error {
	for revision := int64(1); ; revision++ {
		select {
		case limit := <-s.limits:
			plan, err := pace.EvenPlan(limit, time.Second, 1, 0)
			if err != nil {
				return err
			}
			to.Assign(pace.Assignment{Plan: plan, Revision: revision})
		case <-ctx.Done():
			return nil
		}
	}
}

// newTap returns a pacer with a limit that the test can change.
func newTap(t *testing.T, limit int64) (*pace.Pacer, tap) {
	t.Helper()
	s := tap{make(chan int64, 4)}
	s.limits <- limit
	p, err := pace.New(pace.Config{Provider: "test", Source: s, Smoothing: pace.EvenSpread, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, s
}

// running is a running sender.
type running struct {
	*Sender

	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, c Config) *running {
	t.Helper()
	s, err := NewSender(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{Sender: s, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	t.Cleanup(stop)
	return r
}

// end stops a sender and waits for its end.
func (r *running) end(t *testing.T) Counts {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	counts := r.Counts()
	r.mu.Lock()
	defer r.mu.Unlock()
	if counts.Calls != 0 || counts.Backlog != 0 || counts.Partitions != 0 || r.backlog.len()+r.again.len() != 0 {
		t.Errorf("the sender has not released everything: %+v", counts)
	}
	return counts
}

// until waits until a condition is true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting until: " + what)
		}
		<-time.After(time.Millisecond)
	}
}

// commits returns the committed offset of each partition.
func (b *bed) commits() map[int32]int64 {
	offsets := make(map[int32]int64)
	if info := b.cluster.GroupInfo(group); info != nil {
		for id, c := range info.Commits[topic] {
			offsets[id] = c.Offset
		}
	}
	return offsets
}

// ledger records the calls to a provider.
type ledger struct {
	mu      sync.Mutex
	times   []int         // successful calls of each event
	calls   int           // total number
	last    int           // number of events that were not yet sent
	windows map[int64]int // calls by the second of their permit
	answer  func(id int) error
}

func newLedger(events int) ledger {
	return ledger{times: make([]int, events), last: events, windows: make(map[int64]int)}
}

var errNoEvent = errors.New("no event")

func eventOf(r *kgo.Record) (int, error) {
	var id int
	if n, _ := fmt.Sscanf(string(r.Value), `{"event":%d}`, &id); n != 1 {
		return 0, errNoEvent
	}
	return id, nil
}

// call is a provider without HTTP.
func (l *ledger) call(_ context.Context, r *kgo.Record, at headgate.Instant) error {
	id, err := eventOf(r)
	if err != nil {
		return err
	}
	return l.book(id, at)
}

// book counts a call and returns its result.
func (l *ledger) book(id int, at headgate.Instant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.windows[int64(at)/int64(time.Second)]++
	if l.answer != nil {
		if err := l.answer(id); err != nil {
			return err
		}
	}
	if l.times[id]++; l.times[id] == 1 {
		l.last--
	}
	return nil
}

func (l *ledger) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *ledger) allSent() bool { return l.left() == 0 }

// twice returns the events that were sent more than once.
func (l *ledger) twice() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int
	for id, n := range l.times {
		if n > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// mostInWindow returns the largest number of calls with permits of one second.
func (l *ledger) mostInWindow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 0
	for _, n := range l.windows {
		most = max(most, n)
	}
	return most
}

// fullWindows returns the number of seconds in which the calls reached exactly the limit.
func (l *ledger) fullWindows(limit int) (full int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.windows {
		if n == limit {
			full++
		}
	}
	return full
}
