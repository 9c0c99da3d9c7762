package resp

// maxRuns bounds the runs of awaited replies: a connection whose commands alternate this
// often while none is answered carries none of Headgate's calls.
const maxRuns = 4 << 10

// awaited lists the replies to come, in order, as runs of one kind. Scripts follow each
// other, so one run is usual.
type awaited struct {
	runs  []run
	first int // runs before it have been answered
}

type run struct {
	kind kind
	// count is how many replies; for a subscription it is the channels of one command.
	count int64
}

func (a *awaited) add(k kind, count int64) bool {
	if last := len(a.runs) - 1; k != subscription && last >= a.first && a.runs[last].kind == k {
		a.runs[last].count += count
		return true
	}
	if a.first > 0 {
		kept := copy(a.runs, a.runs[a.first:])
		a.runs, a.first = a.runs[:kept], 0
	}
	if len(a.runs) >= maxRuns {
		return false
	}
	a.runs = append(a.runs, run{k, count})
	return true
}

// next gives the kind that is awaited next.
func (a *awaited) next() (kind, bool) {
	if a.first == len(a.runs) {
		return 0, false
	}
	return a.runs[a.first].kind, true
}

// took removes the reply that is awaited next, and gives the count of its run.
func (a *awaited) took() int64 {
	r := &a.runs[a.first]
	count := r.count
	if r.count--; r.count == 0 || r.kind == subscription {
		a.first++
	}
	if a.first == len(a.runs) {
		a.runs, a.first = a.runs[:0], 0
	}
	return count
}
