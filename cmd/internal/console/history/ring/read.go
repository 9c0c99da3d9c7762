package ring

// Span gives the steps of a tier that have ended and begin at a time or later: the start of the first one, and their number. The last
// step of Second is the second before the last Advance.
func (r *Ring) Span(t Tier, since int64) (start int64, n int) {
	if r.began == 0 {
		return since, 0
	}
	step, end := t.Step(), r.now+1
	last := end / step * step // the end of the last step that has ended
	first := max(last-(t.Steps()-1)*step, (r.began+step-1)/step*step)
	if t == Second {
		first = max(last-t.Steps(), r.began)
	}
	if since > first {
		first = (since + step - 1) / step * step
	}
	if first >= last {
		return last, 0
	}
	return first, int((last - first) / step)
}

// NoData is the value of a step without data: the Ring was not advanced in it, or has the counts of it in others.
const NoData = -1

// Read appends the values of n steps of a series. A series without a place has only zeros, or no data if others may count it.
func (r *Ring) Read(to []int64, name string, t Tier, start int64, n int) []int64 {
	i, found := r.names[name]
	full := r.movable >= r.most
	for k := range int64(n) {
		second := start + k*t.Step()
		column := t.column(second)
		switch {
		case !r.covered[column] || found && second < r.places[i].from || !found && full:
			to = append(to, NoData)
		case !found:
			to = append(to, 0)
		default:
			to = append(to, int64(r.chunks[i/lanes][column][i%lanes]))
		}
	}
	return to
}

// Names lists the series that have a place, in no order.
func (r *Ring) Names(yield func(name string) bool) {
	for name := range r.names {
		if !yield(name) {
			return
		}
	}
}
