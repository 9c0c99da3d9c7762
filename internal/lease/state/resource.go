package state

import (
	"time"

	"github.com/headgate/headgate"
)

const never = headgate.Instant(1<<63 - 1)

// resource is a resource with claims.
type resource struct {
	name     string
	by       *sender // opened it
	terms    Resource
	each     int64   // the bound of one claim under Static
	parts    []int64 // of a child: the part of the capacity for each band
	capacity int64
	claims   []*claim // ordered by since when divided
	sum      int64    // of the ledgers of all claims
	holders  int64    // number of holders, also of those below servers

	unknown   int64 // what holders that were not heard may hold
	summed    bool  // the parent has restarted too: it knows only what holders have said
	assumed   int64 // the capacity that counts as given by an earlier server: MaxAmount with its mark
	noted     int64 // sum of the claims
	apart     int64 // sum of the claims, until the server has ended to learn
	forgotten headgate.Instant
	quiet     headgate.Instant // no division before this time

	marked bool // the resource has a mark
	mark   mark

	adapted        headgate.Instant // the last change of the capacity by adapt
	spent, refused int64            // units of calls for the next report to the parent

	due  headgate.Instant // the next call of advance
	heap int              // index in the heap of the server, or -1
	soon headgate.Instant // no claim ends before this time

	divided headgate.Instant  // the last division
	levels  [MaxBands]float64 // of the last division: what unmet claims of each band have for a weight of 1
	drifted int64             // sum of the changes of targets since then
	unpaid  int64             // what claims wait for after the last division

	up       *uplink          // of a child
	unbacked headgate.Instant // no lease that was given while lost ends after this time
	lost     bool             // Config.OnLoss gives the capacity, because the lease of the parent has ended, or because of kept
	kept     bool             // the lease of the parent had ended, and Grace keeps the safe amounts in force beside the new one
}

// free returns the capacity that no lease can use, within the mark. It is negative after the capacity was lowered.
func (r *resource) free() int64 {
	if r.marked {
		return min(r.capacity, r.mark.low) - r.out()
	}
	return r.capacity - r.out()
}

// band returns the index of a band. Claims of a missing band are in the last one.
func (r *resource) band(number int) int { return min(max(number, 1), r.bands()) - 1 }

func (r *resource) bands() int {
	if r.up != nil {
		return MaxBands
	}
	return max(len(r.terms.Floors), 1)
}

// safe returns what a holder may use when it cannot renew.
func (r *resource) safe() int64 {
	if r.terms.Safe >= 0 {
		return r.terms.Safe
	}
	return r.capacity / max(r.holders, 1)
}

// change runs f, which may change the ledger of c, and keeps the sum.
func (r *resource) change(c *claim, f func(l *ledger)) {
	r.sum -= c.ledger.count()
	f(&c.ledger)
	r.sum += c.ledger.count()
}

// add adds a claim.
func (r *resource) add(c *claim) {
	c.at = len(r.claims)
	r.claims = append(r.claims, c)
	r.holders += c.holders
	r.soon = min(r.soon, c.end)
}

// remove removes a claim. Its lease no longer counts.
func (r *resource) remove(c *claim) {
	last := len(r.claims) - 1
	r.claims[c.at] = r.claims[last]
	r.claims[c.at].at = c.at
	r.claims[last] = nil
	r.claims = r.claims[:last]
	r.sum -= c.ledger.count()
	r.noted -= c.noted
	r.apart -= c.apart
	r.holders -= c.holders
}

// interval is the shortest time between two claims that are divided.
func (r *resource) interval() time.Duration {
	if r.terms.Slots {
		return 20 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// queue is a heap of resources by due. A resource knows its index.
type queue []*resource

// schedule makes the resource due at t or earlier.
func (q *queue) schedule(r *resource, t headgate.Instant) {
	if r.heap >= 0 && r.due <= t {
		return
	}
	r.due = t
	if r.heap < 0 {
		r.heap = len(*q)
		*q = append(*q, r)
	}
	q.up(r.heap)
}

// pop removes the first resource.
func (q *queue) pop() *resource {
	old := *q
	first, last := old[0], len(old)-1
	q.swap(0, last)
	old[last] = nil
	*q = old[:last]
	q.down(0)
	first.heap = -1
	return first
}

func (q *queue) swap(i, j int) {
	all := *q
	all[i], all[j] = all[j], all[i]
	all[i].heap, all[j].heap = i, j
}

func (q *queue) up(i int) {
	for all := *q; i > 0 && all[i].due < all[(i-1)/2].due; {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *queue) down(i int) {
	for all := *q; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].due < all[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
