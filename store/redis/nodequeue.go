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

// Bounds of a nodeQueue.
const (
	// maxInFlight is the number of batches in flight to one node: the server works on one, and
	// another one is on the network. After a trip longer than far, farInFlight batches may be in
	// flight, so that callers need not wait for the trips of others.
	maxInFlight = 2
	farInFlight = 32
	far         = 5 * time.Millisecond
	// soon is the longest deadline with which a caller sends inline. Such a caller stays until its
	// deadline, because a sent call cannot be taken back when the context is cancelled.
	soon = time.Second
	// maxBatch bounds the weight of a batch, and thus how long a call blocks the server: about a
	// millisecond, plus at most the heaviest Op. Most Ops weigh 1.
	maxBatch = 256
	// maxQueue bounds the waiting queries. Beyond it, a nodeQueue fails at once.
	maxQueue = 1 << 14
)

// errBusy says that more decisions wait for a node than it can answer in time.
var errBusy = fmt.Errorf("%w: redis: too many decisions wait for one node: add nodes, or take units ahead with prefetch",
	headgate.ErrUnavailable)

// nodeQueue is the queue of one node. Queries that arrive while calls are in flight wait, and then
// share one call (group commit). A query that arrives alone goes at once.
//
// The sender of a call may have to connect first, which takes several trips. A background goroutine
// therefore sends, while callers leave at their deadlines. Only a healthy connection lets a single
// caller send inline, which saves a switch between goroutines.
type nodeQueue struct {
	store   *Store
	node    string
	breaker *breaker.Breaker
	counts  counts
	// calm: the last call was answered, so there is a connection.
	calm atomic.Bool
	// lastTrip is the duration of the last call, in nanoseconds.
	lastTrip atomic.Int64

	across across

	mu       sync.Mutex
	queue    []*query // guarded by mu
	inFlight int      // number of batches; guarded by mu
}

// counts are the counters of a nodeQueue.
type counts struct {
	calls, decisions, failures, unsent, unreached atomic.Uint64
}

// sender is the goroutine that sends a query when no batch is in flight.
type sender bool

const (
	inline sender = false // The caller's goroutine, if the connection is healthy.
	aside  sender = true  // A separate goroutine.
)

// admit asks the breaker. After admission, the caller must call submit or decline.
func (l *nodeQueue) admit(a *query) error {
	a.lane, a.began = l, l.store.since()
	if !l.breaker.Allow(a.began) {
		return l.away()
	}
	return nil
}

func (l *nodeQueue) decline(a *query) { l.breaker.Unknown(a.began) }

// mostInFlight gives maxInFlight, or farInFlight after a long trip.
func (l *nodeQueue) mostInFlight() int {
	if time.Duration(l.lastTrip.Load()) > far {
		return farInFlight
	}
	return maxInFlight
}

// submit sends an admitted query, or queues it for the next batch. Call wait for the answer.
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

// away gives the error of a node with an open breaker.
func (l *nodeQueue) away() error {
	return fmt.Errorf("%w: redis: %s did not answer several times in a row and is left alone until a probe is answered",
		headgate.ErrUnavailable, l.node)
}

// goOn starts the next batch after one has ended, in a separate goroutine: the caller that sent
// the first batch has its answer and leaves.
func (l *nodeQueue) goOn(w *work) {
	if l.next(w) {
		go l.drain(w)
		return
	}
	l.store.lanes.putWork(w)
}

// next takes a batch from the queue. If the queue is empty, it frees the place in flight.
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

// drain sends batches until the queue is empty. A batch without callers frees its place in flight
// for the next one, and ends by itself.
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

// giveUpPlace lets another batch go in place of a batch without callers.
func (l *nodeQueue) giveUpPlace() {
	w := l.store.lanes.getWork()
	if l.next(w) {
		l.drain(w)
		return
	}
	l.store.lanes.putWork(w)
}

// send decides a batch, and finishes each of its queries.
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
		// Without this, queries would be sent after the connection is made, and counted for callers that
		// have left meanwhile.
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

// connect pings the node, so that the client makes a connection.
func (l *nodeQueue) connect(ctx context.Context, client rueidis.Client) {
	node := client
	if l.store.config.Kind == Cluster {
		if node = client.Nodes()[l.node]; node == nil {
			return // The slots are not known yet, or the node has left.
		}
	}
	if node.Do(ctx, node.B().Ping().Build()).Error() == nil {
		l.calm.Store(true) // Any other error will occur in the call itself.
	}
}

// run sends the calls of a batch. While a slot moves, the server refuses a call with keys on both
// nodes, and does not run it. The queries of such a call are sent again, separately, a few times.
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

// maxAttempts bounds the attempts of a query while its slot moves.
const maxAttempts = 5

// pause waits for d, or until ctx ends.
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

// finish answers the queries of one script call.
func (l *nodeQueue) finish(ctx context.Context, p *scriptCall, reply string, err error) {
	failed := err != nil && !moving(err)
	if err == nil {
		if err = p.batch.Read(reply); err != nil { // The answer does not come from the script.
			failed, err = true, fmt.Errorf("redis: %w", err)
		}
	} else {
		l.store.lanes.noticed()
		if left := ctx.Err(); left != nil {
			err = left // rueidis gives the error of the connection.
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

// report gives the breaker the result of a call: one result for all its queries. A caller that
// cancelled before its deadline says nothing about the node.
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

// elsewhere reports whether a call failed at another node: a cluster's client may learn earlier, or
// later, which node has a slot.
func (l *nodeQueue) elsewhere(err error) bool {
	var network *net.OpError
	if l.store.config.Kind != Cluster || !errors.As(err, &network) || network.Addr == nil {
		return false
	}
	at := network.Addr.String()
	return at != l.node && l.store.lanes.isNode(at)
}

// missed tells the breaker, once, that a call was not answered in time.
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

// trip is a batch in flight.
type trip struct {
	// missed: the deadline of a caller has passed before the answer.
	missed atomic.Bool
}
