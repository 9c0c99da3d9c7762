package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/breaker"
)

// Bounds of a lane.
const (
	// maxInFlight is how many batches of one lane are on their way at once: one that the
	// server works on, and one that travels meanwhile. Over a long way many travel, and
	// nobody should wait for a trip that is not his: farInFlight where one takes longer than far.
	maxInFlight = 2
	farInFlight = 32
	far         = 5 * time.Millisecond
	// soon is until when a caller may be kept who sends for himself: until his deadline, since
	// what he has sent cannot be taken back when his context is canceled.
	soon = time.Second
	// maxBatch bounds the weight of a batch, and so for how long a call holds the server:
	// for a millisecond or so, and never more than by the heaviest Op alone. Most Ops weigh 1.
	maxBatch = 256
	// maxQueue bounds the asks that wait: beyond it a lane fails at once.
	maxQueue = 1 << 14
)

// errBusy says that more wait for a node than it can be expected to answer in time.
var errBusy = fmt.Errorf("%w: redis: too many decisions wait for one node: add nodes, or take units ahead with prefetch",
	headgate.ErrUnavailable)

// nodeQueue is the way to one node. Asks that come while its calls are on their way
// wait, and travel together as one call (group commit); one that comes alone goes at
// once.
//
// Who sends a call may have to connect first, which takes several trips. So that is
// done in time of the nodeQueue's own, while callers leave at their deadlines; only as long as
// all is well does a lone caller send for itself, which saves a change of goroutines.
type nodeQueue struct {
	store   *Store
	node    string
	breaker *breaker.Breaker
	counts  counts
	// calm says that the last call was answered: there is a connection.
	calm atomic.Bool
	// lastTrip is how long the last call took, in nanoseconds.
	lastTrip atomic.Int64

	across across

	mu       sync.Mutex
	queue    []*query // under mu
	inFlight int      // batches; under mu
}

// counts is what a lane has done.
type counts struct {
	calls, decisions, failures, unsent, unreached atomic.Uint64
}

// Who sends an ask that finds nothing else on its way.
type sender bool

const (
	inline sender = false // The caller's goroutine, if all is well.
	aside  sender = true  // One of its own.
)

// admit asks the breaker. Who is admitted submits, or says that he does not with decline.
func (l *nodeQueue) admit(a *query) error {
	a.lane, a.began = l, l.store.since()
	if !l.breaker.Allow(a.began) {
		return l.away()
	}
	return nil
}

func (l *nodeQueue) decline(a *query) { l.breaker.Unknown(a.began) }

// mostInFlight is maxInFlight, or farInFlight when the last trip was long.
func (l *nodeQueue) mostInFlight() int {
	if time.Duration(l.lastTrip.Load()) > far {
		return farInFlight
	}
	return maxInFlight
}

// submit sends an admitted ask, or lets it wait for the next batch; its answer comes by wait.
func (l *nodeQueue) submit(ctx context.Context, a *query, by sender) error {
	if deadline, has := ctx.Deadline(); has {
		a.deadline = deadline
	}
	l.mu.Lock()
	switch {
	case l.inFlight < l.mostInFlight():
		l.inFlight++
		l.mu.Unlock()
		w := l.store.lanes.getWork()
		w.asks = append(w.asks, a)
		if by == aside || !l.calm.Load() || time.Until(a.deadline) > soon {
			go l.drain(w) //nolint:gosec // G118: a batch outlives the caller that began it.
			return nil
		}
		l.send(ctx, w)
		l.goOn(w)
	case len(l.queue) >= maxQueue:
		l.mu.Unlock()
		l.breaker.Unknown(a.began)
		return errBusy
	default:
		l.queue = append(l.queue, a)
		l.mu.Unlock()
	}
	return nil
}

// away says why a node is not asked.
func (l *nodeQueue) away() error {
	return fmt.Errorf("%w: redis: %s did not answer several times in a row and is left alone until a probe is answered",
		headgate.ErrUnavailable, l.node)
}

// goOn lets the next batch follow the one that has ended, in a goroutine of its own:
// the caller who sent the first has its answer and leaves.
func (l *nodeQueue) goOn(w *work) {
	if l.next(w) {
		go l.drain(w)
		return
	}
	l.store.lanes.putWork(w)
}

// next takes a batch off the queue, or gives up the place in flight.
func (l *nodeQueue) next(w *work) bool {
	w.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	weight, n := 0, 0
	for n < len(l.queue) && (n == 0 || weight+l.queue[n].weight <= maxBatch) {
		weight += l.queue[n].weight
		n++
	}
	w.asks = append(w.asks, l.queue[:n]...)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if n == 0 {
		l.inFlight--
	}
	return n > 0
}

// drain sends batches until nobody waits. A batch that all its callers have left gives
// its place in flight to the next, and ends by itself.
func (l *nodeQueue) drain(w *work) {
	for {
		patience := time.Until(w.latest(l.store.config.Timeout))
		ctx, cancel := context.WithTimeout(context.Background(), max(patience, l.store.config.Timeout))
		overdue := time.AfterFunc(patience, l.giveUpPlace)
		l.send(ctx, w)
		cancel()
		if !overdue.Stop() || !l.next(w) {
			l.store.lanes.putWork(w)
			return
		}
	}
}

// giveUpPlace lets others go in place of a batch that nobody waits for any more.
func (l *nodeQueue) giveUpPlace() {
	w := l.store.lanes.getWork()
	if l.next(w) {
		l.drain(w)
		return
	}
	l.store.lanes.putWork(w)
}

// send decides a batch, and finishes each of its asks.
func (l *nodeQueue) send(ctx context.Context, w *work) {
	w.dropLeft(l)
	if len(w.asks) == 0 {
		return
	}
	client, err := l.store.link.get(ctx)
	if err != nil {
		for _, a := range w.asks {
			l.breaker.Unknown(a.began)
			l.counts.unreached.Add(1)
			a.finish(err)
		}
		return
	}
	if !l.calm.Load() {
		// Else what is asked would be sent when there is a connection, and be counted for callers
		// who left while it was made.
		l.connect(ctx, client)
		w.dropLeft(l)
	}
	if l.across.node.Load() != nil && len(w.asks) > 1 {
		l.sendAcross(ctx, w)
	}
	w.encode(l)
	if len(w.calls) > 0 {
		l.run(ctx, client, w)
	}
}

// connect asks the node for the answer that does nothing, and so for a connection.
func (l *nodeQueue) connect(ctx context.Context, client rueidis.Client) {
	node := client
	if l.store.config.Kind == Cluster {
		if node = client.Nodes()[l.node]; node == nil {
			return // The slots are not known yet, or the node has gone.
		}
	}
	if node.Do(ctx, node.B().Ping().Build()).Error() == nil {
		l.calm.Store(true) // Else what is wrong the call itself will meet.
	}
}

// run sends the calls of a batch. While a slot moves from one node to another, a call whose
// keys are at both is refused and not run; so its asks go again, each on its
// own, and a few times.
func (l *nodeQueue) run(ctx context.Context, client rueidis.Client, w *work) {
	for attempt := range maxAttempts {
		l.counts.calls.Add(uint64(len(w.calls)))
		began := l.store.since()
		results := l.store.decide.run(ctx, client, w.calls)
		l.lastTrip.Store(int64(l.store.since() - began))
		w.asks = w.asks[:0]
		for i := range results {
			reply, err := results[i].ToString()
			if attempt < maxAttempts-1 && moving(err) {
				w.asks = append(w.asks, w.parts[i].asks...)
				continue
			}
			l.finish(ctx, &w.parts[i], reply, err)
		}
		if len(w.asks) == 0 {
			return
		}
		pause(ctx, time.Duration(attempt)*time.Millisecond)
		w.encodeApart(l)
	}
}

// maxAttempts bounds how often an ask goes whose slot is moving.
const maxAttempts = 5

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// finish answers the asks of one script call.
func (l *nodeQueue) finish(ctx context.Context, p *scriptCall, reply string, err error) {
	failed := err != nil && !moving(err)
	if err == nil {
		if err = p.batch.Read(reply); err != nil { // What answers does not run the script.
			failed, err = true, fmt.Errorf("redis: %w", err)
		}
	} else {
		l.store.lanes.noticed()
		if left := ctx.Err(); left != nil {
			err = left // rueidis says what the connection has met.
		}
		err = couldNot("decide", err)
	}
	l.calm.Store(!failed)
	l.report(ctx, p, failed, err)
	for _, a := range p.asks {
		answer := err
		if err == nil {
			answer = a.decode(l.store, p.batch)
		}
		l.counts.decisions.Add(uint64(len(a.ops)))
		a.finish(answer)
	}
}

// report tells the breaker what came of a call: one result, however many waited for
// it. A caller that left before its time was up says nothing of the node.
func (l *nodeQueue) report(ctx context.Context, p *scriptCall, failed bool, err error) {
	now := l.store.since()
	for _, a := range p.asks {
		switch {
		case a.trip.Load().missed.Load() || failed && (errors.Is(ctx.Err(), context.Canceled) || l.elsewhere(err)):
			l.breaker.Unknown(a.began)
		case failed:
			l.missed(a, now, err)
		default:
			l.changed(l.breaker.Succeeded(a.began, now))
		}
	}
}

// elsewhere reports whether a call has failed at another node: a cluster's client may know
// sooner, or later, which node has which slot.
func (l *nodeQueue) elsewhere(err error) bool {
	var network *net.OpError
	if l.store.config.Kind != Cluster || !errors.As(err, &network) || network.Addr == nil {
		return false
	}
	at := network.Addr.String()
	return at != l.node && l.store.lanes.isNode(at)
}

// missed tells the breaker once that a call was not answered in time.
func (l *nodeQueue) missed(a *query, now time.Duration, err error) {
	if !a.trip.Load().missed.CompareAndSwap(false, true) {
		l.breaker.Unknown(a.began)
		return
	}
	l.calm.Store(false)
	l.counts.failures.Add(1)
	if state, changed := l.breaker.Failed(a.began, now); changed {
		l.store.tell(Change{Node: l.node, State: state, Err: err})
	}
}

func (l *nodeQueue) changed(state breaker.State, changed bool) {
	if changed {
		l.store.tell(Change{Node: l.node, State: state})
	}
}

// trip is a batch on its way.
type trip struct {
	// missed says that somebody's time was up before it was answered.
	missed atomic.Bool
}
