package throttle

import "time"

// flow has the queued requests of one tenant in one bucket, in the order of arrival.
type flow struct {
	head, tail *Request
	length     int
	work       time.Duration // predicted
	start      time.Duration // the start tag of head, in the virtual time of the bucket
	places     [2]int        // the position plus 1 in byStart and byWork; 0 is outside
}

func (f *flow) append(r *Request) {
	r.before, r.after = f.tail, nil
	if f.tail != nil {
		f.tail.after = r
	} else {
		f.head = r
	}
	f.tail = r
	f.length++
	f.work += r.need.work
}

func (f *flow) unlink(r *Request) {
	if r.before != nil {
		r.before.after = r.after
	} else {
		f.head = r.after
	}
	if r.after != nil {
		r.after.before = r.before
	} else {
		f.tail = r.before
	}
	r.before, r.after = nil, nil
	f.length--
	f.work -= r.need.work
}

// excess is the queued work without the newest request. The size of the request that may lose
// its place does not count: otherwise large requests would lose more often than small ones,
// and the service would get too many small ones.
func (f *flow) excess() time.Duration {
	if f.tail == nil {
		return 0
	}
	return f.work - f.tail.need.work
}

// order says which of two orders a flowHeap has.
type order int

const (
	startOrder order = iota
	workOrder
)

// less reports whether a goes before b.
func (o order) less(a, b *flow) bool {
	if o == startOrder {
		return a.start < b.start
	}
	return a.excess() > b.excess()
}

// flowHeap is a binary heap of flows that know their positions.
type flowHeap struct{ flows []*flow }

// fix puts f at its place after a change, adds it, or removes it when it is empty.
func (h *flowHeap) fix(f *flow, o order) {
	at := f.places[o] - 1
	switch {
	case f.length == 0 && at >= 0:
		last := len(h.flows) - 1
		h.swap(at, last, o)
		h.flows[last] = nil
		h.flows = h.flows[:last]
		f.places[o] = 0
		if at < last {
			h.sift(at, o)
		}
	case f.length > 0 && at < 0:
		h.flows = append(h.flows, f)
		f.places[o] = len(h.flows)
		h.sift(len(h.flows)-1, o)
	case f.length > 0:
		h.sift(at, o)
	}
}

// sift moves the flow at position i up or down to its place.
func (h *flowHeap) sift(i int, o order) {
	for i > 0 && o.less(h.flows[i], h.flows[(i-1)/2]) {
		h.swap(i, (i-1)/2, o)
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child >= len(h.flows) {
			return
		}
		if child+1 < len(h.flows) && o.less(h.flows[child+1], h.flows[child]) {
			child++
		}
		if !o.less(h.flows[child], h.flows[i]) {
			return
		}
		h.swap(i, child, o)
		i = child
	}
}

func (h *flowHeap) swap(i, j int, o order) {
	h.flows[i], h.flows[j] = h.flows[j], h.flows[i]
	h.flows[i].places[o], h.flows[j].places[o] = i+1, j+1
}
