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
	"github.com/headgate/headgate/internal/store/breaker"
)

// Bounds of a nodeQueue.
const (
	// maxInFlight is the number of batches in flight to one node: the server works on one batch while
	// the next is on the network. After a round trip longer than far, farInFlight batches may be in
	// flight, so that callers do not wait for the round trips of others.
	maxInFlight = 2
	farInFlight = 32
	far         = 5 * time.Millisecond
	// soon is the longest deadline with which a caller sends inline. Such a caller waits until its
	// deadline, even if its context is cancelled, because a sent call cannot be withdrawn.
	soon = time.Second
	// maxBatch bounds the weight of a batch, and thus the time for which a call blocks the server. The
	// time is about a millisecond, plus at most the heaviest Op. Most Ops weigh 1.
	maxBatch = 256
	// maxQueue bounds the waiting queries. Beyond this number, new queries fail at once.
	maxQueue = 1 << 14
)

// errBusy means that more decisions wait for a node than the node can answer in time.
var errBusy = fmt.Errorf("%w: redis: too many decisions wait for one node (at most %d may wait): add nodes, or use prefetch",
	headgate.ErrUnavailable, maxQueue)

// nodeQueue is the queue of one node. Queries that arrive while calls are in flight wait, and then
// share one call (group commit). A query that arrives alone is sent at once.
//
// The sender of a call may have to connect first, which takes several round trips. A background
// goroutine therefore sends most calls, so that callers can return at their deadlines. If the
// connection is healthy, a single caller sends inline, which saves a goroutine switch.
type nodeQueue struct {
	store   *Store
	node    string
	breaker *breaker.Breaker
	counts  counts
	// healthy is true if the last call was answered, so that the node has a working connection.
	healthy atomic.Bool
	// lastTrip is the duration of the last call, in nanoseconds.
	lastTrip atomic.Int64
	clock    serverClock
	last     breaker.LastFailure

	across across

	mu       sync.Mutex
	queue    []*query // guarded by mu
	inFlight int      // batches in flight; guarded by mu
}

// counts are the counters of a nodeQueue.
type counts struct {
	calls, decisions, failures, unsent, unreached, decided, undecided atomic.Uint64
}

// sender selects the goroutine that sends a query when a batch may start at once.
type sender bool

const (
	inline sender = false // the caller's goroutine, if the connection is healthy
	aside  sender = true  // a separate goroutine
)

// admit checks the breaker. After admission, the caller must call submit or decline.
func (l *nodeQueue) admit(a *query) error {
	a.queue, a.began = l, l.store.since()
	if !l.breaker.Allow(a.began) {
		return l.away()
	}
	return nil
}

func (l *nodeQueue) decline(a *query) { l.breaker.Unknown(a.began) }

// mostInFlight gives maxInFlight, or farInFlight after a long round trip.
func (l *nodeQueue) mostInFlight() int {
	if time.Duration(l.lastTrip.Load()) > far {
		return farInFlight
	}
	return maxInFlight
}

// submit sends an admitted query, or queues it for the next batch. The caller then calls query.wait
// for the answer.
func (l *nodeQueue) submit(ctx context.Context, a *query, by sender) error {
	if deadline, has := ctx.Deadline(); has {
		a.deadline = deadline
	}
	l.mu.Lock()
	switch {
	case l.inFlight < l.mostInFlight():
		l.inFlight++
		l.mu.Unlock()
		w := l.store.queues.getWork()
		w.queries = append(w.queries, a)
		if by == aside || !l.healthy.Load() || time.Until(a.deadline) > soon {
			go l.drain(w) //nolint:gosec // G118: a batch outlives the caller that began it.
			return nil
		}
		l.send(ctx, w)
		l.goOn(w)
	case len(l.queue) >= maxQueue:
		l.mu.Unlock()
		l.breaker.Unknown(a.began)
		l.counts.undecided.Add(1)
		return errBusy
	default:
		l.queue = append(l.queue, a)
		l.mu.Unlock()
	}
	return nil
}

// away gives the error of a node with an open breaker, and counts a decision that was not made.
func (l *nodeQueue) away() error {
	l.counts.undecided.Add(1)
	return fmt.Errorf("%w: redis: node %s failed several times in a row: decisions on its keys fail until the node answers a probe",
		headgate.ErrUnavailable, l.node)
}

// goOn starts the next batch after a batch has ended, in a separate goroutine. The caller that sent
// the first batch has its answer and returns.
func (l *nodeQueue) goOn(w *work) {
	if l.next(w) {
		go l.drain(w)
		return
	}
	l.store.queues.putWork(w)
}

// next moves queries from the queue to w, up to maxBatch. If the queue is empty, next decrements
// inFlight and reports false.
func (l *nodeQueue) next(w *work) bool {
	w.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	weight, n := 0, 0
	for n < len(l.queue) && (n == 0 || weight+l.queue[n].weight <= maxBatch) {
		weight += l.queue[n].weight
		n++
	}
	w.queries = append(w.queries, l.queue[:n]...)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if n == 0 {
		l.inFlight--
	}
	return n > 0
}

// drain sends batches until the queue is empty. After the last deadline of a batch has passed, another
// batch may start in its place, and this drain ends after its call.
func (l *nodeQueue) drain(w *work) {
	for {
		patience := time.Until(w.latest(l.store.config.Timeout))
		ctx, cancel := context.WithTimeout(context.Background(), max(patience, l.store.config.Timeout))
		overdue := time.AfterFunc(patience, l.giveUpPlace)
		l.send(ctx, w)
		cancel()
		if !overdue.Stop() || !l.next(w) {
			l.store.queues.putWork(w)
			return
		}
	}
}

// giveUpPlace starts another batch in place of a batch that has no callers any more.
func (l *nodeQueue) giveUpPlace() {
	w := l.store.queues.getWork()
	if l.next(w) {
		l.drain(w)
		return
	}
	l.store.queues.putWork(w)
}

// send decides a batch, and finishes each of its queries.
func (l *nodeQueue) send(ctx context.Context, w *work) {
	w.dropLeft(l)
	if len(w.queries) == 0 {
		return
	}
	client, err := l.store.link.get(ctx)
	if err != nil {
		for _, a := range w.queries {
			l.breaker.Unknown(a.began)
			l.counts.unreached.Add(1)
			a.finish(err, l.countOf(err)) // A caller that has left is counted.
		}
		return
	}
	if !l.healthy.Load() {
		// Without a working connection, the client would connect first and then send all queries. The server
		// would also count the queries of callers that have left during the connect.
		l.connect(ctx, client)
		w.dropLeft(l)
	}
	if l.across.node.Load() != nil && len(w.queries) > 1 {
		l.sendAcross(ctx, w)
	}
	w.encode(l)
	if len(w.calls) > 0 {
		l.run(ctx, client, w)
	}
}

// connect pings the node, so that the client opens a connection.
func (l *nodeQueue) connect(ctx context.Context, client rueidis.Client) {
	node := client
	if l.store.config.Kind == Cluster {
		if node = client.Nodes()[l.node]; node == nil {
			return // The slots are not known yet, or the node has left.
		}
	}
	if node.Do(ctx, node.B().Ping().Build()).Error() == nil {
		l.healthy.Store(true) // connect drops other errors, because the call itself will report them.
	}
}

// run sends the calls of a batch. While a slot moves, the server refuses a call with keys on both
// nodes, and does not run it. run sends the queries of such a call again, separately, up to
// maxAttempts times in total.
func (l *nodeQueue) run(ctx context.Context, client rueidis.Client, w *work) {
	for attempt := range maxAttempts {
		l.counts.calls.Add(uint64(len(w.calls)))
		began := l.store.since()
		results := l.store.decide.run(ctx, client, w.calls)
		trip := l.store.since() - began
		l.lastTrip.Store(int64(trip))
		w.queries = w.queries[:0]
		for i := range results {
			reply, err := results[i].ToString()
			if attempt < maxAttempts-1 && moving(err) {
				w.queries = append(w.queries, w.scriptCalls[i].queries...)
				continue
			}
			l.finish(ctx, &w.scriptCalls[i], trip, reply, err)
		}
		if len(w.queries) == 0 {
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

// finish answers the queries of one script call. trip is the duration of the call.
func (l *nodeQueue) finish(ctx context.Context, p *scriptCall, trip time.Duration, reply string, err error) {
	failed := err != nil && !moving(err)
	if err == nil {
		if err = p.batch.Read(reply); err != nil { // The reply is not from the script.
			failed, err = true, fmt.Errorf("redis: %w", err)
		} else if l.store.clock == nil {
			l.clock.read(p.batch.Time(), trip)
		}
	} else {
		l.store.queues.noticed()
		if left := ctx.Err(); left != nil {
			err = left // rueidis would report the error of the connection instead.
		}
		err = couldNotAt(l.store.config.Kind, "decide", err)
	}
	l.healthy.Store(!failed)
	l.report(ctx, p, failed, err)
	for _, a := range p.queries {
		ops := uint64(len(a.ops)) // The query belongs to its caller after finish.
		if err != nil {
			a.finish(err, l.countOf(err))
			continue
		}
		l.counts.decisions.Add(ops)
		a.finish(a.decode(l.store, p.batch), &l.counts.decided)
	}
}

// countOf gives the counter of an error. A caller that cancelled its call is not counted.
func (l *nodeQueue) countOf(err error) *atomic.Uint64 {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return &l.counts.undecided
}

// report tells the breaker the result of a call for each of its queries. A caller that cancelled
// before its deadline says nothing about the node.
func (l *nodeQueue) report(ctx context.Context, p *scriptCall, failed bool, err error) {
	now := l.store.since()
	for _, a := range p.queries {
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

// elsewhere reports whether a call failed at another node of the cluster. The client library and
// the store may disagree for a moment about which node has a slot.
func (l *nodeQueue) elsewhere(err error) bool {
	var network *net.OpError
	if l.store.config.Kind != Cluster || !errors.As(err, &network) || network.Addr == nil {
		return false
	}
	at := network.Addr.String()
	return at != l.node && l.store.queues.isNode(at)
}

// missed counts a failed call, at most once for each batch, and tells the breaker.
func (l *nodeQueue) missed(a *query, now time.Duration, err error) {
	if !a.trip.Load().missed.CompareAndSwap(false, true) {
		l.breaker.Unknown(a.began)
		return
	}
	l.healthy.Store(false)
	l.counts.failures.Add(1)
	l.last.Note(time.Now(), err)
	state, changed := l.breaker.Failed(a.began, now)
	r := ruleFor(l.store.config.Kind, err)
	refuses := r != nil && r.pause > 0
	if refuses {
		l.breaker.ProbeWithin(now, leftProbe)
	}
	if changed {
		l.store.tell(Change{Node: l.node, State: state, Err: err, Refuses: refuses})
	}
}

func (l *nodeQueue) changed(state BreakerState, changed bool) {
	if changed {
		l.store.tell(Change{Node: l.node, State: state})
	}
}

// trip is the state that the queries of one sent batch share.
type trip struct {
	// missed is true after the breaker has counted the batch as a failure.
	missed atomic.Bool
}
