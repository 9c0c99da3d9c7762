package fairshare

import "sync/atomic"

// pot holds units that are nobody's.
type pot struct{ units atomic.Int64 }

func (p *pot) put(n int64) {
	if n != 0 {
		p.units.Add(n)
	}
}

// takeUpTo takes n units, or as many as there are.
func (p *pot) takeUpTo(n int64) int64 {
	for {
		held := p.units.Load()
		n = max(0, min(n, held))
		if n == 0 || p.units.CompareAndSwap(held, held-n) {
			return n
		}
	}
}

// level brings the pot to n units, as far as others lend it some, and gives what they
// have then.
func (p *pot) level(n, others int64) int64 {
	held := p.units.Load()
	if held >= n {
		return others + p.takeUpTo(held-n)
	}
	lent := min(n-held, others)
	p.put(lent)
	return others - lent
}

// newCell gives an empty cell.
func newCell(who *client) *cell {
	who.wanted = who.refused.Load()
	return &cell{client: who, common: who.name == Others}
}

// used gives how much of the cycle the client has used when left is in its cell.
func (x *cell) used(left int64) int64 { return x.before + x.given.Load() - left + x.drawn.Load() }

// put adds units to a cell that is not closed.
func (x *cell) put(n int64) bool {
	for {
		left := x.left.Load()
		if left == closed {
			return false
		}
		if x.left.CompareAndSwap(left, left+n) {
			return true
		}
	}
}

// give adds units that nobody has used.
func (x *cell) give(n int64) {
	if x.put(n) {
		x.given.Add(n)
	}
}

// lower takes out what is above keep, and gives how much that was.
func (x *cell) lower(keep int64) int64 {
	keep = max(0, keep)
	for {
		left := x.left.Load()
		if left <= keep {
			return 0
		}
		if x.left.CompareAndSwap(left, keep) {
			x.given.Add(keep - left)
			return left - keep
		}
	}
}

// close ends a cell, and gives what was used of the cycle. Who was about to draw counts
// among it, and takes that back when he finds the cell closed: the client's total
// learns of it when its next cell is closed. mu is held.
func (x *cell) close() (used int64) {
	left, who := x.left.Swap(closed), x.client
	if who.last != nil {
		who.admitted += who.last.drawn.Load() - who.lastDrawn
	}
	who.last, who.lastDrawn = x, x.drawn.Load()
	return x.before + x.given.Load() - left + who.lastDrawn
}
