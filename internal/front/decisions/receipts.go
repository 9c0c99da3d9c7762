package decisions

import (
	"time"

	"github.com/headgate/headgate/guard"
)

// receipts are what the requests of the last messages of one stream took. They never leave the process,
// so no client can give back what another one took. The stream guards them.
type receipts struct {
	ring  []segment // by the number of the message; the length is 0, or a power of 2
	first uint64    // the message of the oldest segment
	next  uint64    // the message of the next segment
	count int
	spare guard.TakenAll // the memory of a dropped segment
}

// segment has the receipts of one message.
type segment struct {
	taken guard.TakenAll // empty before the decision, and when nothing was taken
	count int
	until time.Time // zero before the decision
}

func (r *receipts) at(message uint64) *segment { return &r.ring[message%uint64(len(r.ring))] }

// begin makes a segment for the next message, and gives its number.
func (r *receipts) begin() uint64 {
	if r.next-r.first == uint64(len(r.ring)) {
		const least = 16
		larger := receipts{ring: make([]segment, max(least, 2*len(r.ring)))}
		for n := r.first; n < r.next; n++ {
			*larger.at(n) = *r.at(n)
		}
		r.ring = larger.ring
	}
	*r.at(r.next) = segment{}
	r.next++
	return r.next - 1
}

// memory gives the memory for the receipts of a message with n requests.
func (r *receipts) memory(n int) (taken guard.TakenAll) {
	if r.spare.Cap() <= 2*n { // A small message must not hold the memory of a large one.
		taken, r.spare = r.spare, guard.TakenAll{}
	}
	return taken
}

// fill keeps what a message took. took is the number of its requests that took anything.
func (r *receipts) fill(message uint64, until time.Time, taken guard.TakenAll, took int) (kept int) {
	if message < r.first {
		return 0 // Newer messages have displaced it.
	}
	of := r.at(message)
	if of.until = until; took == 0 {
		taken.Reset()
		r.spare = taken
		return 0
	}
	of.taken, of.count = taken, took
	r.count += took
	return took
}

// drop drops the oldest segment, and gives the number of its receipts.
func (r *receipts) drop() (dropped int) {
	of := r.at(r.first)
	dropped = of.count
	if of.taken.Len() > 0 {
		of.taken.Reset()
		r.spare = of.taken
	}
	*of = segment{}
	r.first++
	r.count -= dropped
	return dropped
}

// trim drops the oldest segments until a number of receipts, and as many segments, are left.
func (r *receipts) trim(most int) (dropped int) {
	for r.count > most || r.next-r.first > uint64(most) {
		dropped += r.drop()
	}
	return dropped
}

// expire drops the segments whose time has passed.
func (r *receipts) expire(now time.Time) (dropped int) {
	for r.first < r.next {
		if of := r.at(r.first); of.until.IsZero() || of.until.After(now) {
			return dropped
		}
		dropped += r.drop()
	}
	r.ring, r.spare = nil, guard.TakenAll{}
	return dropped
}

// take removes the receipt of a request, and gives what it took.
func (r *receipts) take(message uint64, index uint32) (guard.Taken, bool) {
	if message < r.first || message >= r.next {
		return guard.Taken{}, false
	}
	of := r.at(message)
	taken := of.taken.Take(int(index))
	if taken.Empty() {
		return taken, false
	}
	of.count--
	r.count--
	return taken, true
}
