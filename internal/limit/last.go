package limit

import "github.com/headgate/headgate"

// IsLast reports whether r is the last take of a bucket, so that no later decision depends
// on it. r must be Issued by the cell.
func (p *Plan) IsLast(c *Cell, r *headgate.Receipt) bool {
	if !isBucket(p.Policy.Algorithm) || r.Cost < 1 || r.Cost > p.burst {
		return false
	}
	from := span{int64(r.From), r.FromPart}
	return from.add(p.spanOf(r.Cost), p.den) == span{int64(c.Time), c.Units}
}

// ReturnLast returns the units of r if r is the last take of a bucket, and reports whether
// it did.
func (p *Plan) ReturnLast(c *Cell, r *headgate.Receipt) bool {
	if !p.IsLast(c, r) {
		return false
	}
	back := p.notKept(r)
	if back.Cost > 0 {
		c.Time, c.Units = back.From, back.FromPart
	}
	return true
}
