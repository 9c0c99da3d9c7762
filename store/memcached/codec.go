package memcached

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// The form of an item; prefix is its version. Numbers are unsigned varints if nothing else is
// said.
//
//	mark     1 byte, the same in all items
//	last     the time of the latest decision, nanoseconds since 1970
//	states   count, then each, by rising window, algorithm and period:
//	  window     1 byte
//	  policy     the policy that took last: algorithm, 1 byte; 1 byte, 1 if refused attempts
//	             count, else 0 (a policy with CountAll has 1, because its state is the
//	             same), plus twice the unit of a calendar period and endedForm, plus owingForm with an overdraft; count; period; burst;
//	             sub-windows; max wait; ban; the overdraft, if there is one: times in nanoseconds
//	  epoch      2 bytes, big-endian
//	  until      nanoseconds since 1970
//	  cell       time in nanoseconds; units; returned; for a calendar period, the time and the units of
//	             the ended counts
//	  or, for a sliding window: the number of rings; for each N, newest sub-window, every
//	  counter
const (
	itemMark = 2
	// maxStates bounds the states of one key: those of 256 windows, and of the versions of their
	// limits that are still in use.
	maxStates = 1024
	// endedForm marks the states with ended counts. The older form has none, and its count is dropped.
	endedForm = 4
	// owingForm marks a policy with an overdraft, which is its last number.
	owingForm = 0x80
	// maxItem bounds the size of an item that is read: far above 256 windows of 256 sub-windows.
	maxItem = 1 << 20
	// maxTime bounds times that are read, so that no sum overflows.
	maxTime = 1 << 62
)

// errForeign says that an item does not have this form.
var errForeign = errors.New("memcached: an item named " + prefix + "… does not have the form of this version: " +
	"give Headgate servers of its own, use one version of it, or flush the server")

// render gives the item's bytes.
func (it *item) render() []byte {
	b := []byte{itemMark}
	b = binary.AppendUvarint(b, uint64(it.last))
	b = binary.AppendUvarint(b, uint64(len(it.states)))
	for _, s := range it.states {
		b = appendState(b, s)
	}
	return b
}

func appendState(b []byte, s *state) []byte {
	b = append(b, s.window)
	b = appendPolicy(b, &s.plan.Policy)
	b = binary.BigEndian.AppendUint16(b, s.cell.Epoch)
	b = binary.AppendUvarint(b, uint64(s.until))
	if !sliding(s.plan) {
		b = binary.AppendUvarint(b, uint64(s.cell.Time))
		b = binary.AppendUvarint(b, s.cell.Units)
		b = binary.AppendUvarint(b, uint64(s.cell.Returned))
		if s.plan.Calendar() {
			for _, n := range s.ended {
				b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.Time)), n.Units)
			}
		}
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(s.rings)))
	for i := range s.rings {
		w := &s.rings[i]
		b = binary.AppendUvarint(b, uint64(len(w.Counters)-1))
		b = binary.AppendUvarint(b, uint64(w.Newest))
		for _, n := range w.Counters {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

func appendPolicy(b []byte, p *headgate.Policy) []byte {
	counts := byte(0)
	if p.CountRejected {
		counts = 1
	}
	if p.Overdraft > 0 {
		counts |= owingForm
	}
	if p.Limit.Calendar != headgate.NoCalendar {
		counts |= (byte(p.Limit.Calendar) + endedForm) << 1
	}
	b = append(b, byte(p.Algorithm), counts)
	for _, n := range [...]int64{
		p.Limit.Count, int64(p.Limit.Per), p.Limit.Burst, int64(p.SubWindows), int64(p.MaxWait), int64(p.BanFor),
	} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if p.Overdraft > 0 {
		b = binary.AppendUvarint(b, uint64(p.Overdraft))
	}
	return b
}

// reader reads numbers; after the first fault it reads zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// number reads a varint up to most.
func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad = true
		r.b = nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// parseItem reads an item. plans gives the plan of a policy, or an error. The item keeps no
// reference to b.
func parseItem(b []byte, plans func(headgate.Policy) (*limit.Plan, error)) (*item, error) {
	if len(b) > maxItem {
		return nil, errForeign
	}
	r := &reader{b: b}
	if r.byte() != itemMark {
		return nil, errForeign
	}
	last, n := headgate.Instant(r.number(maxTime)), r.number(maxStates)
	it := &item{last: last, states: make([]*state, 0, n)}
	for i := range n {
		s := r.state(plans)
		if r.bad || i > 0 && order(it.states[i-1], s) >= 0 {
			return nil, errForeign
		}
		it.states = append(it.states, s)
	}
	if r.bad || len(r.b) > 0 {
		return nil, errForeign
	}
	return it, nil
}

func (r *reader) state(plans func(headgate.Policy) (*limit.Plan, error)) *state {
	s := &state{window: r.byte()}
	policy := r.policy()
	older := policy.Limit.Calendar <= endedForm
	if !older {
		policy.Limit.Calendar -= endedForm
	}
	if r.bad {
		return s
	}
	plan, err := plans(policy)
	if err != nil || !plan.InCell() && !sliding(plan) {
		r.bad = true
		return s
	}
	s.plan = plan
	s.cell.Epoch = uint16(r.byte())<<8 | uint16(r.byte())
	s.until = headgate.Instant(r.number(maxTime))
	if sliding(plan) {
		r.rings(s)
		return s
	}
	s.cell.Time = headgate.Instant(r.number(maxTime))
	s.cell.Units = r.number(headgate.MaxUnits + 1)
	s.cell.Returned = uint32(r.number(1<<32 - 1))
	switch {
	case !plan.Calendar():
	case older:
		s.cell.Void()
	default:
		for i := range s.ended {
			s.ended[i].Time = headgate.Instant(r.number(maxTime))
			s.ended[i].Units = r.number(headgate.MaxUnits)
		}
	}
	return s
}

func (r *reader) policy() headgate.Policy {
	p := headgate.Policy{Algorithm: headgate.Algorithm(r.byte())}
	counts := r.byte()
	owing := counts&owingForm != 0
	counts &^= owingForm
	p.CountRejected, p.Limit.Calendar = counts&1 == 1, headgate.CalendarUnit(counts>>1)
	p.Limit.Count = int64(r.number(headgate.MaxUnits))
	p.Limit.Per = time.Duration(r.number(maxTime))
	p.Limit.Burst = int64(r.number(headgate.MaxUnits))
	p.SubWindows = int(r.number(limit.MaxSubWindows))
	p.MaxWait = time.Duration(r.number(maxTime))
	p.BanFor = time.Duration(r.number(maxTime))
	if owing {
		p.Overdraft = int64(r.number(headgate.MaxUnits))
	}
	return p
}

// rings reads the counters of a sliding window.
func (r *reader) rings(s *state) {
	n := r.number(limit.MaxRings)
	r.bad = r.bad || n == 0
	for range n {
		w := limit.Windows{Counters: make([]int64, 1+r.number(limit.MaxSubWindows))}
		w.Newest = int64(r.number(maxTime))
		twice := slices.ContainsFunc(s.rings, func(o limit.Windows) bool { return len(o.Counters) == len(w.Counters) })
		if r.bad = r.bad || len(w.Counters) == 1 || twice || !tellable(s.plan.Policy.Limit.Per, &w); r.bad {
			return
		}
		for i := range w.Counters {
			w.Counters[i] = int64(r.number(headgate.MaxUnits + 1))
			w.Total += w.Counters[i]
		}
		s.rings = append(s.rings, w)
	}
}

// tellable reports whether the time at which the newest sub-window expires is within the bound of
// times. The sub-window expires a period and two sub-windows after its beginning.
func tellable(per time.Duration, w *limit.Windows) bool {
	n := uint64(len(w.Counters) - 1)
	hi, lo := bits.Mul64(uint64(w.Newest)+n+2, uint64(per))
	if hi >= n {
		return false
	}
	out, _ := bits.Div64(hi, lo, n)
	return out <= maxTime
}
