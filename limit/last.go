package limit

import "github.com/headgate/headgate"

// IsLast reports whether r, a receipt of the cell's epoch, is what a bucket has taken
// last, so that no later decision stands on it.
func (p *Plan) IsLast(c *Cell, r *headgate.Receipt) bool {
	if !isBucket(p.Policy.Algorithm) || r.Cost < 1 || r.Cost > p.burst {
		return false
	}
	from := span{int64(r.From), r.FromPart}
	return from.add(p.spanOf(r.Cost), p.den) == span{int64(c.Time), c.Units}
}

// ReturnLast gives r back if it is what a bucket has taken last, and reports whether.
func (p *Plan) ReturnLast(c *Cell, r *headgate.Receipt) bool {
	if !p.IsLast(c, r) {
		return false
	}
	c.Time, c.Units = r.From, r.FromPart
	return true
}
