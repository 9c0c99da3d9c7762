package fairshare

import "sync/atomic"

// pool holds units that belong to no client.
type pool struct{ units atomic.Int64 }

func (p *pool) put(n int64) {
	if n != 0 {
		p.units.Add(n)
	}
}

// takeUpTo takes n units, or all units of the pool if it has fewer.
func (p *pool) takeUpTo(n int64) int64 {
	for {
		held := p.units.Load()
		n = max(0, min(n, held))
		if n == 0 || p.units.CompareAndSwap(held, held-n) {
			return n
		}
	}
}

// level brings the pool to n units. It puts surplus into others, or takes missing units
// from others as far as they go, and returns the new others.
func (p *pool) level(n, others int64) int64 {
	held := p.units.Load()
	if held >= n {
		return others + p.takeUpTo(held-n)
	}
	lent := min(n-held, others)
	p.put(lent)
	return others - lent
}

func newCell(who *client) *cell {
	who.wanted = who.refused.Load()
	return &cell{client: who, isOthers: who.name == Others}
}

// used returns the units that the client has used in the cycle, given that left units
// remain in its cell.
func (x *cell) used(left int64) int64 { return x.before + x.given.Load() - left + x.drawn.Load() }

// put adds units to the cell. It reports false if the cell is closed.
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

// give adds units that no client has used.
func (x *cell) give(n int64) {
	if x.put(n) {
		x.given.Add(n)
	}
}

// lower removes the units above keep, and returns their number.
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

// close closes the cell, and returns the units used in the cycle. A concurrent draw counts
// as used, and is reversed when its caller finds the cell closed. The caller holds mu.
func (x *cell) close() (used int64) {
	left := x.left.Swap(closed)
	used = x.before + x.given.Load() - left + x.drawn.Swap(0)
	x.settled.Store(true)
	x.settle() // a draw that was reversed before settled was set
	return used
}

// settle moves what draws have counted since the cell was closed to the client's total, after any number
// of further cells. A draw that is reversed meanwhile calls it again, so at rest nothing is left in the cell.
func (x *cell) settle() { x.client.late.Add(x.drawn.Swap(0)) }

// reverse takes back a draw of n units. It may come after the cell was closed.
func (x *cell) reverse(n int64) {
	x.drawn.Add(-n)
	if x.settled.Load() {
		x.settle()
	}
}
