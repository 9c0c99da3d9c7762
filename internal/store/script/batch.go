package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Faults of what is added to a Batch, beside those of package headgate.
var (
	// ErrSameState: a group names one state twice.
	ErrSameState = errors.New("script: two Ops of one group have the same Key and Window: give them one Op, or two Windows")
	// ErrFull: the batch has no room for the group.
	ErrFull = errors.New("script: the batch is full: send it, and add the group to another")
	// ErrNoGrant: a group is to be granted what cannot be.
	ErrNoGrant = errors.New("script: a grant takes one cost, at least the least, with Take, of no leaky_bucket or ban: ask for all of it")
)

// Bounds of a batch: the scripts count keys and policies in 16 bits, and Ops of a
// group in 8.
const (
	maxKeys     = 1<<15 - 1
	maxGroupOps = 255
)

// The first byte of what lua/decide.lua is asked.
const (
	askRun   = 0
	askGroup = 1
)

// Batch is one call of Decide: groups whose keys lie in one hash slot, in the order in
// which they are decided. It is made once and used again: Reset, Add and Add, Keys and
// Args, Read, and Explain for each group. It is not safe for concurrent use.
//
// What Keys and Args give is never written to again: a call whose caller has left may
// still be on its way.
type Batch struct {
	names  *Names
	asked  []byte
	states numbered[state]
	plans  numbered[*Plan]
	lists  []int // The states that have a list, by number.
	groups []groupSpan
	width  int // How many numbers the reply has.
	run    run

	scratch []byte
	keys    []string
	args    []string
	slack   time.Duration
	slackIs string
	numbers []int64
}

// groupSpan is where the numbers of a group begin in the reply, and how many Ops it has.
type groupSpan struct {
	from, ops int
	grant     bool
}

// run is the run that the last group was added to, if there is one.
type run struct {
	at          int // Where in asked its length is; 0 is no run.
	plan        *Plan
	cost, least int64
	next        int // The key that would prolong it.
}

// Reset empties the batch. What is added from now on has its keys from names.
func (b *Batch) Reset(names *Names) {
	b.names = names
	b.asked = append(b.asked[:0], 0, 0) // How many states there are; Args fills it in.
	b.states.reset()
	b.plans.reset()
	b.lists, b.groups = b.lists[:0], b.groups[:0]
	b.width, b.run = 1, run{}
	b.numbers = b.numbers[:0]
}

// Len gives how many groups were added.
func (b *Batch) Len() int { return len(b.groups) }

// Add adds a group: plans[i] is the policy, and places[i] the place, of ops[i]. All
// are taken, or none, as headgate.Store says. An error has added nothing.
//
// least above 0 asks for a grant: the ops, which have one Cost, take the greatest n
// from least up to it with which all of them pass, and Receipt.Cost says what n was.
// If even least does not pass, the group is decided as a Take of least.
func (b *Batch) Add(ops []headgate.Op, plans []*Plan, places []Place, least int64) error {
	if err := check(ops, plans, places, least); err != nil {
		return err
	}
	if len(b.states.list)+len(b.lists)+2*len(ops) > maxKeys || len(b.groups) >= maxKeys {
		return ErrFull
	}
	b.groups = append(b.groups, groupSpan{from: b.width, ops: len(ops), grant: least > 0})
	if least > 0 {
		b.width++
	}
	if !b.addToRun(ops, plans, places, least) {
		b.addGroup(ops, plans, places, least)
	}
	for _, p := range plans {
		b.width += p.width
	}
	return nil
}

// check finds the faults of a group.
func check(ops []headgate.Op, plans []*Plan, places []Place, least int64) error {
	if len(ops) == 0 || len(ops) > maxGroupOps || len(plans) != len(ops) || len(places) != len(ops) {
		return fmt.Errorf("script: a group of %d Ops, %d plans and %d places: give as many of each, 1 to %d",
			len(ops), len(plans), len(places), maxGroupOps)
	}
	for i := range ops {
		if err := checkOp(&ops[i], plans[i]); err != nil {
			return err
		}
		for j := range i {
			if places[j] == places[i] {
				return ErrSameState
			}
		}
		if least != 0 && !grantable(&ops[i], plans[i], ops[0].Cost, least) {
			return ErrNoGrant
		}
	}
	return nil
}

func checkOp(op *headgate.Op, p *Plan) error {
	switch {
	case p == nil:
		return headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return headgate.ErrBadCost
	case op.Kind > headgate.Book:
		return fmt.Errorf("script: mode %d is not known: use Take, Peek or Book", op.Kind)
	case op.Kind == headgate.Book && !p.isBucket():
		return headgate.ErrNotBookable
	}
	return nil
}

func grantable(op *headgate.Op, p *Plan, cost, least int64) bool {
	a := p.policy.Algorithm
	return least > 0 && op.Cost == cost && least <= cost && op.Kind == headgate.Take &&
		a != headgate.LeakyBucket && a != headgate.Ban
}

// addToRun adds a group of one Take of a short plan to a run, the one that is there or
// a new one, and reports whether it is such a group.
func (b *Batch) addToRun(ops []headgate.Op, plans []*Plan, places []Place, least int64) bool {
	p, cost := plans[0], ops[0].Cost
	if len(ops) > 1 || ops[0].Kind != headgate.Take || !p.short() {
		return false
	}
	if least > 0 && least <= p.room {
		cost = min(cost, p.room) // No more is ever granted.
	}
	if cost > p.room {
		return false
	}
	key := b.states.number(state{places[0], p.family})
	r := &b.run
	if r.at > 0 && r.plan == p && r.cost == cost && r.least == least && r.next == key {
		r.next++
		n := binary.LittleEndian.Uint16(b.asked[r.at:])
		binary.LittleEndian.PutUint16(b.asked[r.at:], n+1)
		return true
	}
	b.asked = append(b.asked, askRun, byte(p.policy.Algorithm))
	*r = run{at: len(b.asked), plan: p, cost: cost, least: least, next: key + 1}
	b.asked = appendIndex(b.asked, 1, b.plans.number(p)+1, key+1)
	for _, n := range [...]int64{cost, least, p.interval.us, p.refill.us, p.horizon.us} {
		b.asked = appendNumber(b.asked, n)
	}
	return true
}

func (b *Batch) addGroup(ops []headgate.Op, plans []*Plan, places []Place, least int64) {
	b.run = run{}
	b.asked = append(b.asked, askGroup, byte(len(ops)))
	b.asked = appendNumber(b.asked, least)
	for i := range ops {
		key, list := b.states.number(state{places[i], plans[i].family}), 0
		if plans[i].needsList() {
			list = b.listOf(key)
		}
		b.asked = appendIndex(b.asked, b.plans.number(plans[i])+1, key+1, list)
		b.asked = append(b.asked, byte(ops[i].Kind))
		b.asked = appendNumber(b.asked, ops[i].Cost)
	}
}

// listOf gives the number of a state's list, counted from 1.
func (b *Batch) listOf(key int) int {
	b.lists = append(b.lists, key)
	return len(b.lists)
}

func appendIndex(b []byte, indexes ...int) []byte {
	for _, i := range indexes {
		b = binary.LittleEndian.AppendUint16(b, uint16(i))
	}
	return b
}

// Keys gives the keys of the call.
func (b *Batch) Keys() []string {
	b.scratch = b.scratch[:0]
	ends := make([]int, 0, len(b.states.list)+len(b.lists))
	for _, s := range b.states.list {
		b.scratch = b.names.appendState(b.scratch, s)
		ends = append(ends, len(b.scratch))
	}
	for _, key := range b.lists {
		b.scratch = b.names.appendList(b.scratch, b.states.list[key])
		ends = append(ends, len(b.scratch))
	}
	// One string is cut into all the names.
	all, from := string(b.scratch), 0
	b.keys = make([]string, 0, len(ends))
	for _, to := range ends {
		b.keys = append(b.keys, all[from:to])
		from = to
	}
	return b.keys
}

// Args gives the arguments of the call. now is the time to decide at, in tests, and 0
// the server's; slack is how long keys are kept beyond their use, for the rounding of
// times to live and for small steps of the clock.
func (b *Batch) Args(now headgate.Instant, slack time.Duration) []string {
	if b.slackIs == "" || b.slack != slack {
		b.slack, b.slackIs = slack, millis(slack)
	}
	binary.LittleEndian.PutUint16(b.asked, uint16(len(b.states.list)))
	b.args = make([]string, 0, 3+len(b.plans.list))
	b.args = append(b.args, timeOf(now), b.slackIs, string(b.asked))
	for _, p := range b.plans.list {
		b.args = append(b.args, p.packed)
	}
	return b.args
}

// timeOf renders a time for the scripts: nothing asks for the server's.
func timeOf(now headgate.Instant) string {
	if now == 0 {
		return ""
	}
	return strconv.FormatInt(int64(now)/int64(time.Microsecond), 10)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
