package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Errors of Add, besides those of package headgate.
var (
	// ErrSameState means that two Ops of a group have the same state.
	ErrSameState = errors.New("script: two Ops of one group have the same Key and Window: use one Op, or different Windows")
	// ErrFull means that the batch has no capacity for the group.
	ErrFull = errors.New("script: the batch is full: send the batch, and add the group to a new one")
	// ErrNoGrant means that the group of a grant is invalid.
	ErrNoGrant = errors.New("script: invalid grant: use Take with equal costs, a least of 1 up to the cost, and no leaky_bucket or ban")
)

// Bounds of a batch: the query has 16 bits for the number of a key or policy, and 8 bits for the Ops
// of a group.
const (
	maxKeys     = 1<<15 - 1
	maxGroupOps = 255
)

// The first byte of a query of lua/decide.lua.
const (
	queryRun   = 0
	queryGroup = 1
)

// Batch is one call of Decide: groups with keys in one hash slot, in the order of their decisions.
// A Batch can be reused. For each call, use Reset, Add for each group, Keys and Args, Read, and then
// Explain for each group. A Batch is not safe for concurrent use.
//
// A Batch never changes the results of Keys and Args later, because a call may still be in flight
// after its caller has left.
type Batch struct {
	names  *Names
	query  []byte
	states numbered[state]
	plans  numbered[*Plan]
	lists  []int // numbers of the states with a list
	groups []groupSpan
	width  int // length of the reply, in doubles
	run    run

	scratch []byte
	keys    []string
	args    []string
	slack   time.Duration
	slackIs string
	numbers []int64
}

// groupSpan is the position of a group's numbers in the reply, and its number of Ops.
type groupSpan struct {
	from, ops int
	grant     bool
}

// run is the run that has the last group, if any. lua/decide.lua describes runs.
type run struct {
	at          int // position of the run's length in query; 0 means no run
	plan        *Plan
	cost, least int64
	next        int // number of the state that would extend the run
}

// Reset empties the batch. names gives the keys of the groups added afterwards.
func (b *Batch) Reset(names *Names) {
	b.names = names
	b.query = append(b.query[:0], 0, 0) // Args sets the number of states.
	b.states.reset()
	b.plans.reset()
	b.lists, b.groups = b.lists[:0], b.groups[:0]
	b.width, b.run = 1, run{}
	b.numbers = b.numbers[:0]
}

// Len gives the number of groups.
func (b *Batch) Len() int { return len(b.groups) }

// Add adds a group: plans[i] and places[i] are the policy and the place of ops[i]. All Ops take their
// units, or none of them does, as described at headgate.Store. After an error, the batch is unchanged.
//
// A least above 0 requests a grant. All ops must have the same Cost. Each Op takes n units,
// and Receipt.Cost is n: the largest number from least to Cost with which all ops pass. If least does not pass, the group
// is decided as a Take of least.
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

// check gives the first error of a group.
func check(ops []headgate.Op, plans []*Plan, places []Place, least int64) error {
	if len(ops) == 0 || len(ops) > maxGroupOps || len(plans) != len(ops) || len(places) != len(ops) {
		return fmt.Errorf("script: a group has %d Ops, %d plans and %d places: use equal numbers from 1 to %d",
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
	return limit.CheckGroup(ops)
}

func checkOp(op *headgate.Op, p *Plan) error {
	switch {
	case p == nil:
		return headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return headgate.ErrBadCost
	}
	if err := p.CheckEdges(op.Edges); err != nil {
		return err
	}
	return limit.CheckKind(p.policy.Algorithm, op.Kind)
}

func grantable(op *headgate.Op, p *Plan, cost, least int64) bool {
	return least > 0 && op.Cost == cost && least <= cost && op.Kind == headgate.Take && p.grants()
}

// addToRun adds a group of one Take of a short plan to the current run, or to a new one. It reports
// false for any other group.
func (b *Batch) addToRun(ops []headgate.Op, plans []*Plan, places []Place, least int64) bool {
	p, cost := plans[0], ops[0].Cost
	if len(ops) > 1 || ops[0].Kind != headgate.Take || !p.short() {
		return false
	}
	if least > 0 && least <= p.room {
		cost = min(cost, p.room) // A grant is at most room units.
	}
	if cost > p.room {
		return false
	}
	key := b.states.number(state{places[0], p.family})
	r := &b.run
	if r.at > 0 && r.plan == p && r.cost == cost && r.least == least && r.next == key {
		r.next++
		n := binary.LittleEndian.Uint16(b.query[r.at:])
		binary.LittleEndian.PutUint16(b.query[r.at:], n+1)
		return true
	}
	b.query = append(b.query, queryRun, byte(p.policy.Algorithm))
	*r = run{at: len(b.query), plan: p, cost: cost, least: least, next: key + 1}
	b.query = appendIndex(b.query, 1, b.plans.number(p)+1, key+1)
	for _, n := range [...]int64{cost, least, p.interval.us, p.refill.us, p.horizon.us} {
		b.query = appendNumber(b.query, n)
	}
	return true
}

func (b *Batch) addGroup(ops []headgate.Op, plans []*Plan, places []Place, least int64) {
	b.run = run{}
	b.query = append(b.query, queryGroup, byte(len(ops)))
	b.query = appendNumber(b.query, least)
	for i := range ops {
		key, list := b.states.number(state{places[i], plans[i].family}), 0
		if plans[i].needsList() {
			list = b.listOf(key)
		}
		b.query = appendIndex(b.query, b.plans.number(plans[i])+1, key+1, list)
		b.query = append(b.query, byte(ops[i].Kind))
		b.query = appendNumber(b.query, ops[i].Cost)
		if plans[i].calendar() {
			for _, edge := range ops[i].Edges {
				b.query = appendNumber(b.query, int64(edge)/int64(time.Microsecond))
			}
		}
	}
}

// listOf adds a list for a state and gives its number, from 1.
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
	// One string has all names, which saves allocations.
	all, from := string(b.scratch), 0
	b.keys = make([]string, 0, len(ends))
	for _, to := range ends {
		b.keys = append(b.keys, all[from:to])
		from = to
	}
	return b.keys
}

// Args gives the arguments of the call. now is the time of the decision in tests; 0 means the server's
// time. slack is the time for which keys outlive their states. It covers the rounding of times to
// live, and small steps of the clock.
func (b *Batch) Args(now headgate.Instant, slack time.Duration) []string {
	if b.slackIs == "" || b.slack != slack {
		b.slack, b.slackIs = slack, millis(slack)
	}
	binary.LittleEndian.PutUint16(b.query, uint16(len(b.states.list)))
	b.args = make([]string, 0, 3+len(b.plans.list))
	b.args = append(b.args, timeOf(now), b.slackIs, string(b.query))
	for _, p := range b.plans.list {
		b.args = append(b.args, p.packed)
	}
	return b.args
}

// timeOf renders a time for the scripts. An empty string means the server's time.
func timeOf(now headgate.Instant) string {
	if now == 0 {
		return ""
	}
	return strconv.FormatInt(int64(now)/int64(time.Microsecond), 10)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
