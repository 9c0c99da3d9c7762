package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of a plan. Within them every product below fits in 127 bits and every
// quotient in 63.
const (
	MaxLimit     = 1 << 40
	MaxInstances = 1 << 20
	MaxPer       = 366 * 24 * time.Hour
	MinPer       = time.Millisecond
	// MaxTurn bounds the units of a turn, and with them the work of [Uneven].
	MaxTurn = 1 << 24
)

// ErrPlan says that a plan is none; the error that wraps it says what to write instead.
var ErrPlan = errors.New("pace: not a plan")

// Plan says how many units of a provider's limit are one instance's in each window.
// Windows are numbered from the Unix epoch: window w is [w*Per, (w+1)*Per).
//
// The zero Plan admits nothing. A Plan is a value, and is not changed once made:
// any number of goroutines may use it.
type Plan struct {
	Limit     int64         // units a window, of all instances together
	Per       time.Duration // a window's length
	Instances int
	Index     int // 0 to Instances-1

	// sums has for an uneven division the units of the first k windows of a turn, from
	// k = 0 to the turn's length. It is nil for an even one.
	sums []int64
	most int64 // the largest part of a window
}

// Even divides the limit evenly: see [Plan.Part].
func Even(limit int64, per time.Duration, instances, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: instances, Index: index}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	p.most = (limit + int64(instances) - 1) / int64(instances)
	return p, nil
}

func (p Plan) check() error {
	switch {
	case p.Limit < 0 || p.Limit > MaxLimit:
		return fmt.Errorf("%w: limit %d: it is from 0 to %d", ErrPlan, p.Limit, int64(MaxLimit))
	case p.Per < MinPer || p.Per > MaxPer:
		return fmt.Errorf("%w: a window of %v: it is from %v to %v", ErrPlan, p.Per, MinPer, MaxPer)
	case p.Instances < 1 || p.Instances > MaxInstances:
		return fmt.Errorf("%w: %d instances: they are from 1 to %d", ErrPlan, p.Instances, MaxInstances)
	case p.Index < 0 || p.Index >= p.Instances:
		return fmt.Errorf("%w: index %d of %d instances: it is from 0 to %d", ErrPlan, p.Index, p.Instances, p.Instances-1)
	}
	return nil
}

// Window gives the number of the window that t is in.
func (p Plan) Window(t headgate.Instant) int64 {
	w := int64(t) / int64(p.Per)
	if int64(t)%int64(p.Per) < 0 {
		w--
	}
	return w
}

// Start gives the time at which window w begins.
func (p Plan) Start(w int64) headgate.Instant { return headgate.Instant(w * int64(p.Per)) }

// Part gives this instance's units of window w: floor(((w+1)R+i)/N) - floor((wR+i)/N)
// for an even division, so that the parts of all instances add up to R in every
// window (Hermite's identity), and one instance has in any run of windows less than
// one unit more or less than its even part.
func (p Plan) Part(w int64) int64 { return p.Sum(w, w+1) }

// Most gives the largest part that any window can have.
func (p Plan) Most() int64 { return p.most }

// Sum gives this instance's units of the windows from, from+1 to to-1.
func (p Plan) Sum(from, to int64) int64 {
	switch {
	case p.Limit == 0 || to <= from:
		return 0
	case p.sums != nil:
		return p.turned(to) - p.turned(from) + (p.turn(to)-p.turn(from))*p.sums[len(p.sums)-1]
	}
	// floor((toR+i)/N) - floor((fromR+i)/N) = floor(((to-from)R + (fromR+i) mod N)/N).
	hi, lo := bits.Mul64(uint64(to-from), uint64(p.Limit))
	lo, carry := bits.Add64(lo, p.rest(from), 0)
	return quotient(hi+carry, lo, uint64(p.Instances))
}

// rest gives (wR + i) mod N.
func (p Plan) rest(w int64) uint64 {
	n := int64(p.Instances)
	return uint64((modulo(w, n)*(p.Limit%n) + int64(p.Index)) % n)
}

// After gives the first window by whose end this instance has had need units since
// window from began, and how many of them it had before that window. It is false when
// they never come, or not within 292 years.
func (p Plan) After(from, need int64) (w, before int64, ok bool) {
	if need <= 0 {
		return from, 0, true
	}
	last, ok := p.last(from, need)
	if !ok {
		return 0, 0, false
	}
	return last, p.Sum(from, last), true
}

func (p Plan) last(from, need int64) (int64, bool) {
	if p.Limit == 0 {
		return 0, false
	}
	if p.sums != nil {
		return p.lastOfTurns(from, need)
	}
	// The least k with floor((kR + rest)/N) >= need, which is kR >= need*N - rest.
	hi, lo := bits.Mul64(uint64(need), uint64(p.Instances))
	lo, borrow := bits.Sub64(lo, p.rest(from), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(p.Limit-1), 0)
	return p.within(from, quotient(hi+carry, lo, uint64(p.Limit)))
}

// within gives the k-th window from from on, when there is a time at which it begins.
func (p Plan) within(from, k int64) (int64, bool) {
	last := int64(1<<63-1)/int64(p.Per) - 1
	if k > last || from > last-k+1 {
		return 0, false
	}
	return from + k - 1, true
}

// Turns gives how many windows make a turn for [Uneven]: 1 where windows have many
// units an instance, else as many as make the parts fine enough.
func Turns(limit int64, instances int) int64 {
	const fine = 64 // Units an instance in a turn, at least.
	if limit <= 0 {
		return 1
	}
	wanted := fine * int64(max(instances, 1))
	return min((wanted+limit-1)/limit, max(MaxTurn/limit, 1))
}

// Uneven divides the limit by units: of each turn's limit*turns units, instance k has
// units[k], which add up to them. Over a turn each has just its units, and in every
// window the parts add up to the limit: unit u of a turn is in window u/limit, and
// belongs to whose stretch of the units contains u*m mod limit*turns, which for an m
// prime to them each number is once.
func Uneven(limit int64, per time.Duration, units []int64, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: len(units), Index: index}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	turns := Turns(limit, len(units))
	var lo, all int64
	for k, n := range units {
		if n < 0 || n > limit*turns-all {
			return Plan{}, fmt.Errorf("%w: the parts of %d instances exceed %d units", ErrPlan, len(units), limit*turns)
		}
		if k < index {
			lo += n
		}
		all += n
	}
	if all != limit*turns {
		return Plan{}, fmt.Errorf("%w: the parts add up to %d of %d units", ErrPlan, all, limit*turns)
	}
	p.sums = stretch(limit, turns, lo, lo+units[index])
	for k := range turns {
		p.most = max(p.most, p.sums[k+1]-p.sums[k])
	}
	return p, nil
}

// stretch counts the units of each window of a turn that fall into [lo, hi).
func stretch(limit, turns, lo, hi int64) []int64 {
	sums := make([]int64, turns+1)
	if turns == 1 {
		sums[1] = hi - lo
		return sums
	}
	all := limit * turns
	step := primeTo(all)
	var at int64
	for u := range all {
		w := u/limit + 1
		if at >= lo && at < hi {
			sums[w]++
		}
		if at += step; at >= all {
			at -= all
		}
	}
	for k := range turns {
		sums[k+1] += sums[k]
	}
	return sums
}

// primeTo gives a step prime to n near n divided by the golden ratio, whose multiples
// spread most evenly.
func primeTo(n int64) int64 {
	step := max(int64(float64(n)*0.6180339887498949), 1)
	for gcd(step, n) != 1 {
		step++
	}
	return step
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (p Plan) windows() int64 { return int64(len(p.sums)) - 1 }

// turned gives the units of a turn's windows before w's place in it.
func (p Plan) turned(w int64) int64 { return p.sums[modulo(w, p.windows())] }

// turn gives the number of the turn that w is in.
func (p Plan) turn(w int64) int64 { return (w - modulo(w, p.windows())) / p.windows() }

func (p Plan) lastOfTurns(from, need int64) (int64, bool) {
	each := p.sums[len(p.sums)-1]
	if each == 0 {
		return 0, false
	}
	place := modulo(from, p.windows())
	need += p.sums[place]
	whole := (need - 1) / each
	need -= whole * each
	if whole > (1<<62)/p.windows() {
		return 0, false
	}
	k := int64(sort.Search(len(p.sums), func(k int) bool { return p.sums[k] >= need }))
	return p.within(from, whole*p.windows()+k-place)
}

// Equal says whether two plans give the same parts.
func (p Plan) Equal(o Plan) bool {
	return p.Limit == o.Limit && p.Per == o.Per && p.Instances == o.Instances && p.Index == o.Index && slices.Equal(p.sums, o.sums)
}

func modulo(a, n int64) int64 {
	if a %= n; a < 0 {
		a += n
	}
	return a
}

// quotient gives hi:lo / n, and the largest number where it does not fit.
func quotient(hi, lo, n uint64) int64 {
	if hi >= n {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, n)
	return int64(min(q, 1<<63-1))
}
