package resp

// maxRuns bounds the runs of expected replies. Headgate's commands never alternate this often
// without an answer.
const maxRuns = 4 << 10

// awaited is the queue of expected replies, as runs of one kind. Scripts follow each other, so
// one run is usual.
type awaited struct {
	runs  []run
	first int // the runs before first have been answered
}

type run struct {
	kind kind
	// count is the number of replies; for a subscription, the number of channels of one command.
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

// next gives the kind of the next expected reply.
func (a *awaited) next() (kind, bool) {
	if a.first == len(a.runs) {
		return 0, false
	}
	return a.runs[a.first].kind, true
}

// pop removes the next expected reply, and gives the count of its run.
func (a *awaited) pop() int64 {
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
