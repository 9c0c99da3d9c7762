package etcd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// epoch is the start of virtual time.
var epoch = time.Unix(1_000_000, 0)

func virtual(d time.Duration) headgate.Instant { return headgate.Instant(epoch.Add(d).UnixNano()) }

// listener is a pace.Receiver in virtual time.
type listener struct {
	timeline    schedule.Timeline
	valid       time.Time
	assignments []pace.Assignment
	faults      []error
}

func (l *listener) Assign(a pace.Assignment) {
	l.assignments = append(l.assignments, a)
	l.timeline.Add(schedule.Change{
		Plan: a.Plan, From: a.From, Settled: headgate.Instant(a.Settled.UnixNano()), Revision: a.Revision,
	})
}
func (l *listener) ValidUntil(t time.Time)    { l.valid = t }
func (l *listener) Brake(pace.Brake)          {}
func (l *listener) ClockOffset(time.Duration) {}
func (l *listener) Fault(err error)           { l.faults = append(l.faults, err) }
func (l *listener) Demand() int64             { return 0 }

// Rate implements pace.Receiver. This source gives plans.
func (*listener) Rate(pace.Rate) {}

// Requested implements pace.Receiver.
func (*listener) Requested() (total, waiting int64) { return 0, 0 }

// part gives the number of units that may be used in the window at a time.
func (l *listener) part(d time.Duration) (start headgate.Instant, units int64, ok bool) {
	if !epoch.Add(d).Before(l.valid) {
		return 0, 0, false
	}
	w, ok := l.timeline.At(virtual(d), headgate.Instant(epoch.Add(d).UnixNano()))
	return w.Start, w.Part, ok
}

const (
	simBound  = 400 * time.Millisecond
	simEvery  = simBound / 4
	simWindow = 100 * time.Millisecond
	simStep   = 5 * time.Millisecond
	simLimit  = 100
)

func simMoment(d time.Duration) moment {
	return moment{mono: epoch.Add(d), wall: virtual(d), settle: settled(simBound), valid: valid(simBound)}
}

// commit is one write of the plan in etcd.
type commit struct {
	mark mark
	plan *plan // nil for an invalid plan
	at   time.Duration
}

// node is an instance of a simulation.
type node struct {
	standing assignedPart
	listener listener
	taken    map[headgate.Instant]int64

	cut, uncut time.Duration // no message arrives between these times
	watched    int           // commits that the watch has delivered
	watches    time.Duration // time of the next delivery
	reads      time.Duration // time of the next read
	pending    []arrival
}

// arrival is the answer to a read, in flight.
type arrival struct {
	sent, at time.Duration
	served   int  // commits that the answer contains
	forgot   bool // older commits are compacted
}

// simulation has nodes that follow one sequence of plans. Their reads and watches take any time,
// or never return.
type simulation struct {
	rand    *rand.Rand
	nodes   []*node
	commits []commit
	next    time.Duration // time of the next plan
	version int64
	created int64
	broken  func(*assignedPart, moment) // an injected fault that the test must find, or nil
	calm    bool                        // no node is cut off, left out of a plan, or without an answer for long
}

func newSimulation(seed uint64, onLoss OnLoss) *simulation {
	s := &simulation{rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 4 {
		n := &node{taken: map[headgate.Instant]int64{}}
		n.standing = assignedPart{to: &n.listener, id: string(rune('a' + i)), onLoss: onLoss, holdFor: time.Hour, registered: true}
		n.standing.begin(simMoment(0))
		s.nodes = append(s.nodes, n)
	}
	return s
}

// write adds a plan that was sent some time ago, usually a short time. A few plans are invalid.
// A few follow no plan, because the key was deleted.
func (s *simulation) write(d time.Duration) {
	late := s.upTo(50 * time.Millisecond)
	if s.rand.IntN(8) == 0 {
		late = s.upTo(3 * time.Second)
	}
	revision := int64(len(s.commits) + 1)
	s.version++
	if !s.calm && s.rand.IntN(20) == 0 || s.created == 0 {
		s.version, s.created = 1, revision
	}
	p := &plan{limit: simLimit, per: simWindow, from: edge(virtual(max(0, d-late)).Add(simBound), simWindow)}
	for _, c := range s.commits {
		if c.plan != nil {
			p.from = max(p.from, c.plan.from)
		}
	}
	for _, n := range s.nodes {
		if s.calm || s.rand.IntN(5) > 0 {
			p.members = append(p.members, n.standing.id)
		}
	}
	if len(p.members) == 0 {
		p.members = []string{"a"}
	}
	s.rand.Shuffle(len(p.members), func(i, j int) { p.members[i], p.members[j] = p.members[j], p.members[i] })
	if s.rand.IntN(2) == 0 { // by an instance of an earlier version
		p.units = randomUnits(s.rand, simLimit*turns(simLimit, len(p.members)), len(p.members))
	}
	if s.rand.IntN(15) == 0 {
		p = nil
	}
	s.commits = append(s.commits, commit{mark{s.created, s.version, revision}, p, d})
	s.next = d + s.upTo(700*time.Millisecond)
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.rand.Int64N(int64(d) + 1))
}

// step runs the events of a time.
func (s *simulation) step(d time.Duration) {
	if d >= s.next {
		s.write(d)
	}
	for _, n := range s.nodes {
		s.receive(n, d)
		n.standing.speak(simMoment(d))
		if start, units, ok := n.listener.part(d); ok {
			if _, known := n.taken[start]; !known {
				n.taken[start] = units
			}
		}
	}
}

// receive delivers plans to a node.
func (s *simulation) receive(n *node, d time.Duration) {
	if !s.calm && d > n.uncut && s.rand.IntN(600) == 0 {
		n.cut, n.uncut = d, d+s.upTo(2*time.Second)
	}
	away := d < n.uncut
	if d >= n.reads && !away {
		n.reads = d + simEvery
		elapsed := s.upTo(40 * time.Millisecond)
		if s.rand.IntN(10) == 0 {
			elapsed = s.upTo(simBound)
		}
		if s.calm {
			elapsed = s.upTo(simBound / 3)
		}
		n.pending = append(n.pending, arrival{sent: d, at: d + elapsed, served: len(s.commits), forgot: !s.calm && s.rand.IntN(10) == 0})
	}
	if n.watched < len(s.commits) && d >= n.watches && !away {
		n.learn(s, n.watched, d)
		n.watched++
		n.watches = d + s.upTo(60*time.Millisecond)
		if s.rand.IntN(10) == 0 {
			n.watches = d + s.upTo(2*time.Second)
		}
	}
	n.pending = slices.DeleteFunc(n.pending, func(a arrival) bool {
		if a.at <= d && !away {
			n.take(s, a, d)
		}
		return a.at <= d
	})
}

func (n *node) learn(s *simulation, i int, d time.Duration) {
	now := simMoment(d)
	if s.broken != nil {
		s.broken(&n.standing, now)
	}
	n.standing.learn(s.commits[i].mark, s.commits[i].plan, now)
}

// take gives a node the answer to a read: the newest plan, and the plans in between if etcd
// still has them.
func (n *node) take(s *simulation, a arrival, d time.Duration) {
	if a.served == 0 {
		return
	}
	newest := s.commits[a.served-1]
	for i, c := range s.commits[:a.served-1] {
		if !a.forgot && c.mark.create == newest.mark.create && n.standing.known.mod != 0 && c.mark.create == n.standing.known.create {
			n.learn(s, i, d)
		}
	}
	n.learn(s, a.served-1, d)
	n.watched = max(n.watched, a.served)
	n.standing.verified(epoch.Add(a.sent), epoch.Add(time.Hour), simMoment(d))
}

// run gives the use of the worst window, and the average use of all windows.
func (s *simulation) run(d time.Duration) (most, average int64, story string) {
	for at := time.Duration(0); at < d; at += simStep {
		s.step(at)
	}
	sums := map[headgate.Instant]int64{}
	for _, n := range s.nodes {
		for start, units := range n.taken {
			sums[start] += units
		}
	}
	for start, units := range sums {
		average += units
		if units > most {
			most, story = units, fmt.Sprintf("at %v", time.Duration(start-virtual(0)))
			for _, n := range s.nodes {
				story += fmt.Sprintf(", %s %d", n.standing.id, n.taken[start])
			}
		}
	}
	return most, average / int64(d/simWindow), story
}

// TestNeverOver: with Stop, no window has more than the limit, whatever message is late or lost.
// While no node is cut off for long, most of the limit is used.
func TestNeverOver(t *testing.T) {
	var all int64
	const seeds = 50
	for seed := range uint64(seeds) {
		most, average, story := newSimulation(seed, Stop).run(20 * time.Second)
		if most > simLimit {
			t.Errorf("seed %d: %d units: %s", seed, most, story)
		}
		all += average
	}
	t.Logf("%d of %d units a window", all/seeds, simLimit)
	if all/seeds < simLimit/2 {
		t.Errorf("%d of %d units a window: the rules stop too much", all/seeds, simLimit)
	}
}

// TestHeld: with Hold, no window has more than the limit while no node is cut off. No node is
// without a part once all have started.
func TestHeld(t *testing.T) {
	for seed := range uint64(30) {
		s := newSimulation(seed, Hold)
		s.calm = true
		most, average, story := s.run(20 * time.Second)
		if most > simLimit || average < simLimit/2 {
			t.Errorf("seed %d: %d units: %s; %d on average", seed, most, story, average)
		}
	}
}

// TestNeverOverCanFail: without one of the rules, the simulation finds a window above the limit.
func TestNeverOverCanFail(t *testing.T) {
	for name, broken := range map[string]func(*assignedPart, moment){
		"who has missed a plan goes on":      func(s *assignedPart, _ moment) { s.known.create, s.known.version, s.known.mod = 0, 0, 0 },
		"who is left out keeps its part":     func(s *assignedPart, _ moment) { s.onLoss = Hold; s.holdFor = simBound },
		"what is read is valid for longer":   func(s *assignedPart, _ moment) { s.until = s.until.Add(simBound) },
		"a part is taken before others know": func(s *assignedPart, _ moment) { s.opens = min(s.opens, 1) },
	} {
		found := false
		for seed := uint64(0); seed < 300 && !found; seed++ {
			s := newSimulation(seed, Stop)
			s.broken = broken
			most, _, _ := s.run(20 * time.Second)
			found = most > simLimit
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}
