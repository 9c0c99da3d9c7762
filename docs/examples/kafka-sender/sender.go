package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// Sender reads a topic and makes one call for each of its records, as fast as the
// provider's limit allows. Sender commits a record after its call and all earlier calls of its
// partition have succeeded. Each record is sent at least once.
//
// A Sender has three goroutines for any number of records. The first reads, the second
// requests permits in the order of the records, and the client's own one commits. Each
// call in flight has one more goroutine.
type Sender struct {
	c      Config
	client *kgo.Client
	wake   chan struct{} // Has a value when requestPermits may have work.
	failed chan error    // Has the error that ends the sender.

	calls    sync.WaitGroup
	handover sync.Mutex // Locked while partitions are released: Run may end during a rebalance.

	mu sync.Mutex // Guards the fields below. Never locked during a call of a pacer or a group.

	partitions map[place]*partition
	backlog    fifo[*event] // records before their first try, in the order of reading
	again      fifo[*event] // records to retry, which go first
	free       int          // number of calls that may start, of Config.Calls
	counts     Counts
}

// NewSender returns a Sender and joins the group. Call Run to start it.
func NewSender(c Config) (*Sender, error) {
	s := &Sender{c: c.withDefaults(), wake: make(chan struct{}, 1), failed: make(chan error, 1)}
	s.partitions = make(map[place]*partition)
	s.free = s.c.Calls
	client, err := kgo.NewClient(append(s.options(), c.Options...)...)
	if err != nil {
		return nil, err
	}
	s.client = client
	return s, nil
}

func (s *Sender) options() []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumeTopics(s.c.Topic),
		kgo.ConsumerGroup(s.c.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// After a pause, the client fetches buffered records of a partition again.
		kgo.FetchMaxPartitionBytes(128 << 10),
		// A broker without new records answers only after this time. Until then the client cannot
		// fetch a resumed partition from it. Several such waits may follow each other before the
		// last records arrive.
		kgo.FetchMaxWait(40 * time.Millisecond),
		// No rebalance may happen between reading records and adding them to the backlog.
		// Otherwise records read before it would look like records read after it. The block takes
		// only microseconds, because reading never waits for sending.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitEvery),
		kgo.AutoCommitCallback(s.committed),
		// For dead letters, a retry of the record is better than a call that hangs.
		kgo.RecordDeliveryTimeout(s.c.CallTimeout),
	}
}

const (
	// commitEvery limits the records that are sent again after a crash to the records of this
	// time.
	commitEvery = time.Second
	// answerWithin limits the wait for brokers when the program ends or releases partitions.
	answerWithin = 5 * time.Second
	// readAtOnce limits how far a partition can exceed its part of the backlog. A partition
	// never has more than twice its part.
	readAtOnce = 500
)

// Run sends until ctx ends. Run then starts no new calls, waits up to Config.Drain for calls
// in flight, commits, and leaves the group. The end takes a few seconds more at most.
// Records that were not sent stay in Kafka for the next reader. Run can be called once.
func (s *Sender) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	calls, stopCalls := context.WithCancel(context.WithoutCancel(ctx)) // Calls in flight continue after ctx ends.
	defer stopCalls()
	var failure error
	var loops sync.WaitGroup
	loops.Go(func() { s.requestPermits(ctx, calls) })
	loops.Go(func() {
		select {
		case failure = <-s.failed:
			stop()
		case <-ctx.Done():
		}
	})
	err := s.read(ctx)
	stop()
	loops.Wait()
	// The client leaves the group only after the calls have drained and the offsets are
	// committed.
	s.revoked(calls, s.client, s.ours())
	s.leave()
	stopCalls()
	s.calls.Wait()
	return errors.Join(err, failure)
}

// leave leaves the group. leave waits only answerWithin for the brokers, because the client
// would retry for more than a minute. The session then expires.
func (s *Sender) leave() {
	left := make(chan struct{})
	go func() {
		s.client.CloseAllowingRebalance()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(answerWithin):
		s.c.Logger.Warn("cannot leave the group in time: its partitions are free when the session expires")
	}
}

// read adds records to the backlog. read never waits for sending. While it waits for records,
// all partitions may be paused, and the client still answers the group.
func (s *Sender) read(ctx context.Context) error {
	for {
		fetches := s.client.PollRecords(ctx, s.pollSize())
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if fetches.IsClientClosed() {
			return kgo.ErrClientClosed
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			s.c.Logger.Error("cannot read: the client will retry", "topic", topic, "partition", partition, "error", err)
		})
		s.enqueue(fetches)
		s.client.AllowRebalance()
	}
}

// requestPermits requests a permit for each record. requestPermits runs in one goroutine, so that the
// calls of a partition start in its order.
func (s *Sender) requestPermits(ctx, calls context.Context) {
	for {
		e := s.next()
		if e == nil {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		ticket := s.c.Pacer.AcquireFunc(1, pace.Forever, func(at headgate.Instant, err error) { s.permitted(calls, e, at, err) })
		s.keep(e, ticket)
	}
}

// next returns the next record that needs a permit, if a call may start. The call then
// starts as soon as the permit arrives, not when an earlier call ends.
func (s *Sender) next() *event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return nil
	}
	e, ok := s.again.pop()
	if !ok {
		e, ok = s.backlog.pop()
	}
	if !ok {
		return nil
	}
	s.free--
	e.state, e.ticket = waiting, pace.Ticket{}
	return e
}

// keep stores the ticket of a waiting record, or cancels it if the partition has moved
// since.
func (s *Sender) keep(e *event, ticket pace.Ticket) {
	s.mu.Lock()
	kept := e.of.state == active
	if kept && e.state == waiting {
		e.ticket = ticket
	}
	s.mu.Unlock()
	if !kept {
		s.giveUp(ticket)
	}
}

// giveUp cancels tickets and frees their calls. A ticket with a permit at the same moment
// frees its own call.
func (s *Sender) giveUp(tickets ...pace.Ticket) {
	freed := 0
	for _, t := range tickets {
		if t.Cancel() {
			freed++
		}
	}
	s.mu.Lock()
	s.free += freed
	s.mu.Unlock()
	s.signal()
}

// signal wakes requestPermits.
func (s *Sender) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
