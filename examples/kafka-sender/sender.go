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
// provider's limit allows. A record is committed after its call has succeeded, and all
// before it in its partition: each is sent at least once.
//
// Three goroutines do it, whatever the number of records: one reads, one asks for
// permits in the order in which records were read, and one of the client's commits.
// Each call has one more, for as long as it takes.
type Sender struct {
	c      Config
	client *kgo.Client
	wake   chan struct{} // Has something in it when there may be work for ask.
	failed chan error    // Has what ends the sender.

	calls    sync.WaitGroup
	handover sync.Mutex // Held while partitions are given away: the end may meet a rebalance.

	mu sync.Mutex // Never held while a pacer or a group is asked for something. It guards the rest.

	partitions map[place]*partition
	backlog    fifo[*event] // those not yet tried, in the order in which they were read
	again      fifo[*event] // those to be tried once more; they go first
	free       int          // calls that may be begun, of Config.Calls
	counts     Counts
}

// NewSender joins the group. Run does the rest.
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
		// What is buffered of a partition is read once more after it was paused.
		kgo.FetchMaxPartitionBytes(128 << 10),
		// A broker that is asked for partitions in which nothing new is answers after this
		// time only, and only then can be asked for one that is no longer paused. Several of
		// these waits can follow one another before the last records are read.
		kgo.FetchMaxWait(40 * time.Millisecond),
		// A rebalance never comes between reading records and writing them down: what was
		// read before it would be taken for what is read after it. We hold it up for
		// microseconds, since reading never waits for sending.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitEvery),
		kgo.AutoCommitCallback(s.committed),
		// For the dead letters: better a record that is tried again than a call that hangs.
		kgo.RecordDeliveryTimeout(s.c.CallTimeout),
	}
}

const (
	// commitEvery bounds what is sent again after a crash to what is sent in this time.
	commitEvery = time.Second
	// answerWithin bounds the wait for brokers, when it is the end that waits.
	answerWithin = 5 * time.Second
	// readAtOnce bounds how far a partition can exceed its part of the backlog, which it
	// does not more than double.
	readAtOnce = 500
)

// Run sends until ctx is done. Then it begins no call any more, waits for those under
// way as long as Config.Drain says, commits and leaves the group: seconds more at
// most. What was not sent stays in Kafka for whoever reads next. It can be called once.
func (s *Sender) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	calls, stopCalls := context.WithCancel(context.WithoutCancel(ctx)) // They are drained.
	defer stopCalls()
	var failure error
	var loops sync.WaitGroup
	loops.Go(func() { s.ask(ctx, calls) })
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
	// While we drain, the group still hears of us: who leaves it first is silent from then
	// on.
	s.revoked(calls, s.client, s.ours())
	s.leave()
	stopCalls()
	s.calls.Wait()
	return errors.Join(err, failure)
}

// leave leaves the group. Brokers that do not answer learn of it from the end of our
// session: the client would try for a minute and more.
func (s *Sender) leave() {
	left := make(chan struct{})
	go func() {
		s.client.CloseAllowingRebalance()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(answerWithin):
		s.c.Logger.Warn("cannot leave the group in time: its partitions are free when the session ends")
	}
}

// read takes down what there is to send. It never waits for sending: while it waits for
// records, all partitions may be paused, and the group is answered all the same.
func (s *Sender) read(ctx context.Context) error {
	for {
		fetches := s.client.PollRecords(ctx, s.room())
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if fetches.IsClientClosed() {
			return kgo.ErrClientClosed
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			s.c.Logger.Error("cannot read: it is tried again", "topic", topic, "partition", partition, "error", err)
		})
		s.takeDown(fetches)
		s.client.AllowRebalance()
	}
}

// ask asks for permits, for one record after the other. It is one goroutine, so that
// the calls of a partition begin in its order.
func (s *Sender) ask(ctx, calls context.Context) {
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

// next takes the next record to ask for, when a call may be begun: the permit is used
// the moment it is given, not when a call of an earlier window has ended.
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

// keep keeps the ticket of a record that waits, or gives it up when its partition went
// away meanwhile.
func (s *Sender) keep(e *event, ticket pace.Ticket) {
	s.mu.Lock()
	kept := e.of.state == owned
	if kept && e.state == waiting {
		e.ticket = ticket
	}
	s.mu.Unlock()
	if !kept {
		s.giveUp(ticket)
	}
}

// giveUp gives tickets back, and frees the calls that were kept for them. Those that
// were permitted in the same moment free theirs themselves.
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

// signal has ask look for work.
func (s *Sender) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
