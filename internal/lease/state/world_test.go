package state

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// world runs servers and holders in virtual time. Messages have a delay, and some are lost or
// repeated.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	now     headgate.Instant
	events  events
	order   uint64
	loss    float64 // fraction of lost messages
	repeat  float64 // fraction of messages that arrive twice
	late    headgate.Instant
	nodes   []*node
	clients []*client
	dead    []*client
	names   int
	sent    int // number of messages
	many    int // claims of a resource from which small changes wait, or 0
}

// event happens at a time. Events of one time happen in order.
type event struct {
	at    headgate.Instant
	order uint64
	do    func()
}

type events []event

func (e *events) Len() int      { return len(*e) }
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// node is a server of the tree.
type node struct {
	w      *world
	name   string
	parent *node
	below  map[string]*node
	users  map[string]*client
	delay  headgate.Instant // to the parent, one way
	config Config
	server *Server // nil while it is down
	out    Out
	wake   headgate.Instant
	marks  *markStore // of a group, or nil
}

// client is a holder.
type client struct {
	w     *world
	name  string
	node  *node
	delay headgate.Instant
	held  Held
	wants int64
	seq   uint64
	gone  bool
	heard uint64 // the newest report that was answered
	round uint64 // of its timers

	safe         int64
	grace        Grace
	leased, kept bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return &world{t: t, rand: rand.New(rand.NewPCG(seed, 7))}
}

func (w *world) at(t headgate.Instant, do func()) {
	w.order++
	heap.Push(&w.events, event{t, w.order, do})
}

// send delivers a message after a delay, unless it is lost.
func (w *world) send(delay headgate.Instant, arrive func()) {
	w.sent++
	if w.rand.Float64() < w.loss {
		return
	}
	late := headgate.Instant(0)
	if w.late > 0 {
		late = headgate.Instant(w.rand.Int64N(int64(w.late)))
	}
	w.at(w.now+delay+late, arrive)
	if w.rand.Float64() < w.repeat {
		w.at(w.now+delay+late+headgate.Instant(w.rand.Int64N(int64(2*sec))), arrive)
	}
}

// run runs until a time.
func (w *world) run(until headgate.Instant) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

func (w *world) node(name string, parent *node, delay headgate.Instant, c Config) *node {
	n := &node{w: w, name: name, parent: parent, delay: delay, config: c, below: map[string]*node{}, users: map[string]*client{}}
	if parent != nil {
		parent.below[name] = n
	}
	w.nodes = append(w.nodes, n)
	n.start()
	return n
}

func (n *node) start() {
	if n.marks != nil {
		n.config.Marks = n.marks.begin()
	}
	server, err := New(n.config, n.w.now)
	if err != nil {
		n.w.t.Fatal(err)
	}
	if n.w.many > 0 {
		server.many = n.w.many
	}
	n.server, n.wake = server, never
	n.config.Term++
	n.config.Restarted = true
}

// fail stops the server. Another one takes its place after a time.
func (n *node) fail(down headgate.Instant) {
	if n.server == nil {
		return
	}
	n.server = nil
	n.w.at(n.w.now+down, n.start)
}

// restart stops all servers at one time. Each starts again within 1 to 2 s, and its clients report to it within 2 s more.
func (w *world) restart() {
	down := map[*node]headgate.Instant{}
	for _, n := range w.nodes {
		down[n] = sec + headgate.Instant(w.rand.Int64N(int64(sec)))
		n.fail(down[n])
	}
	for _, c := range w.clients {
		w.at(w.now+down[c.node]+headgate.Instant(w.rand.Int64N(int64(2*sec))), func() {
			if !c.gone {
				c.refresh()
			}
		})
	}
}

// flush sends the messages of the server, and sets its timer.
func (n *node) flush() {
	for i := range n.out.Leases {
		d := n.out.Leases[i]
		if c := n.users[d.Holder]; c != nil {
			n.w.send(c.delay, func() { c.receive(&d.Lease) })
		} else if b := n.below[d.Holder]; b != nil {
			n.w.send(b.delay, func() { b.fromParent(d.Lease) })
		}
	}
	if n.out.Up.Seq != 0 {
		up := Report{Holder: n.name, Seq: n.out.Up.Seq, Claims: append([]Claim(nil), n.out.Up.Claims...), Acks: append([]Ack(nil), n.out.Up.Acks...)}
		n.w.send(n.delay, func() { n.parent.receive("server", &up) })
	}
	for _, r := range n.out.Refusals {
		n.w.t.Fatalf("refused: %v", r.Err)
	}
	if n.marks != nil {
		n.marks.put(n, n.out.Marks)
	}
	n.out.Reset()
	if at, ok := n.server.Next(); ok && at < n.wake {
		n.wake = max(at, n.w.now)
		server := n.server
		n.w.at(n.wake, func() {
			if n.server == server && n.wake <= n.w.now {
				n.wake = never
				server.Advance(n.w.now, &n.out)
				n.flush()
			}
		})
	}
}

func (n *node) receive(caller string, r *Report) {
	if n.server == nil {
		return
	}
	if err := n.server.Receive(n.w.now, caller, r, &n.out); err != nil {
		n.w.t.Fatal(err)
	}
	n.flush()
}

func (n *node) fromParent(lease Lease) {
	if n.server != nil {
		n.server.ReceiveParent(n.w.now, []Lease{lease})
		n.flush()
	}
}

// join adds a client with a demand.
func (w *world) join(n *node, delay headgate.Instant, wants int64) *client {
	w.names++
	c := &client{w: w, name: fmt.Sprint("c", w.names), node: n, delay: delay, wants: wants}
	n.users[c.name] = c
	w.clients = append(w.clients, c)
	c.refresh()
	return c
}

// refresh reports, and sets the timers of the next report: a retry, or a refresh with jitter.
func (c *client) refresh() {
	c.seq++
	c.round++
	c.held.Sent(c.w.now, c.seq)
	claim := Claim{Resource: "db", Wants: c.wants}
	c.held.Claim(c.w.now, &claim)
	report := &Report{Holder: c.name, Seq: c.seq, Claims: []Claim{claim}}
	c.w.send(c.delay, func() { c.node.receive("", report) })
	seq, round := c.seq, c.round
	c.w.at(c.w.now+500*ms, func() {
		if c.round == round && !c.gone && c.heard < seq {
			c.refresh()
		}
	})
	jitter := headgate.Instant(c.w.rand.Int64N(int64(sec / 2)))
	c.w.at(c.w.now+headgate.Instant(c.node.config.Refresh)-jitter, func() {
		if c.round == round && !c.gone {
			c.refresh()
		}
	})
}

func (c *client) receive(lease *Lease) {
	if c.gone {
		return
	}
	lost := c.leased && c.held.Left(c.w.now) <= 0
	if lost {
		c.grace, c.kept = Grace{}, false
	}
	lost = lost || c.held.Left(c.w.now) > 0 && c.held.Lease().Unbacked
	acknowledge := c.held.Receive(lease)
	if c.held.Left(c.w.now) > 0 {
		newest := c.held.Lease()
		c.grace.Receive(c.w.now, newest)
		c.leased, c.kept, c.safe = true, (lost || c.kept) && c.grace.Left(c.w.now) > 0, newest.Safe
	}
	c.heard = max(c.heard, lease.Seq)
	if acknowledge {
		c.seq++
		report := &Report{Holder: c.name, Seq: c.seq, Acks: []Ack{c.held.Ack("db")}}
		c.w.send(c.delay, func() { c.node.receive("", report) })
	}
}

// uses returns what a holder in the mode safe may use: its lease, after its end the safe amount, and both during a Grace.
func (c *client) uses() int64 {
	amount, has := c.held.Amount(c.w.now), c.held.Left(c.w.now) > 0
	switch {
	case c.leased && !c.gone && !has:
		return c.safe
	case c.kept && !c.gone && c.grace.Left(c.w.now) > 0:
		return max(amount, c.safe)
	}
	return amount
}

// want changes the demand.
func (c *client) want(wants int64) {
	if c.wants = wants; !c.gone {
		c.refresh()
	}
}

// die stops a client without a message. Its lease stays until its end.
func (w *world) die(i int) *client {
	c := w.clients[i]
	c.gone = true
	last := len(w.clients) - 1
	w.clients[i] = w.clients[last]
	w.clients = w.clients[:last]
	w.dead = append(w.dead, c)
	return c
}

// out returns the sum of all leases that have not ended, those of dead clients too.
func (w *world) out() int64 {
	var sum int64
	for _, c := range w.clients {
		sum += c.held.Amount(w.now)
	}
	live := w.dead[:0]
	for _, c := range w.dead {
		if amount := c.held.Amount(w.now); amount > 0 {
			sum += amount
			live = append(live, c)
		}
	}
	w.dead = live
	return sum
}

// compare returns the wanted capacity, what of it is handed out, and how much is misplaced
// against one division of all clients.
func (w *world) compare(capacity int64) (wanted, used, misplaced int64) {
	clients := make([]share.Client, len(w.clients))
	for i, c := range w.clients {
		clients[i] = share.Client{Weight: 1, Demand: c.wants}
	}
	var scratch share.Scratch
	for i, size := range scratch.Fill(capacity, clients) {
		amount := w.clients[i].held.Amount(w.now)
		wanted += size
		used += min(amount, w.clients[i].wants)
		misplaced += max(size-amount, 0)
	}
	return wanted, used, misplaced
}

// consistent checks what a server keeps, and that no ledger is above the capacity.
func (w *world) consistent() {
	for _, n := range w.nodes {
		if n.server == nil {
			continue
		}
		for _, r := range n.server.resources {
			var sum, holders int64
			for i, c := range r.claims {
				sum += c.ledger.count()
				holders += c.holders
				if c.at != i || c.grant > c.ledger.count() {
					w.t.Fatalf("%v: %s: claim %d of %s has the grant %d and counts %d", w.now.Sub(0), n.name, i, c.holder.name, c.grant, c.ledger.count())
				}
			}
			if sum != r.sum || holders != r.holders {
				w.t.Fatalf("%v: %s: the sum is %d for %d holders, want %d for %d", w.now.Sub(0), n.name, r.sum, r.holders, sum, holders)
			}
			if n.parent == nil && r.sum+r.unknown > r.capacity {
				w.t.Fatalf("%v: %s: the ledger has %d + %d of %d", w.now.Sub(0), n.name, r.sum, r.unknown, r.capacity)
			}
		}
	}
}

func every(w *world, interval headgate.Instant, do func()) {
	w.at(w.now+interval, func() {
		do()
		every(w, interval, do)
	})
}

func length(d time.Duration, c Config) Config {
	c.Lease = d
	return c
}
