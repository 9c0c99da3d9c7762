package decisions

import (
	"time"
	"unsafe"

	"github.com/headgate/headgate/guard"
)

// receipts are what the requests of the last messages of one stream took. They never leave the process,
// so no client can give back what another one took. The stream guards them.
type receipts struct {
	ring  []segment      // by the number of the message; the length is 0, or a power of 2
	first uint64         // the message of the oldest segment
	next  uint64         // the message of the next segment
	count int            // requests that took anything
	held  int64          // the bytes of all segments beside the ring
	spare guard.TakenAll // the memory of a dropped segment
}

// segment has the receipts of one message.
type segment struct {
	taken guard.TakenAll // empty before the decision, and when nothing was taken
	size  int64          // of taken when it was filled, in bytes
	count int
	until time.Time // zero before the decision
}

const (
	segmentBytes = int64(unsafe.Sizeof(segment{}))
	// leastRing is the length of a ring that does not count: it is a part of the call.
	leastRing = 16
)

func (r *receipts) at(message uint64) *segment { return &r.ring[message%uint64(len(r.ring))] }

// size is the memory of the receipts, in bytes.
func (r *receipts) size() int64 {
	return r.held + r.spare.Size() + max(0, int64(len(r.ring))-leastRing)*segmentBytes
}

// full reports whether the next message needs a larger ring.
func (r *receipts) full() bool {
	return len(r.ring) >= leastRing && r.next-r.first == uint64(len(r.ring))
}

// begin makes a segment for the next message, and gives its number. Call resize before if the ring is full.
func (r *receipts) begin() uint64 {
	if len(r.ring) == 0 {
		r.resize(leastRing)
	}
	*r.at(r.next) = segment{}
	r.next++
	return r.next - 1
}

// resize moves the segments to a ring of a length that has room for them.
func (r *receipts) resize(length int) {
	to := receipts{ring: make([]segment, length)}
	for n := r.first; n < r.next; n++ {
		*to.at(n) = *r.at(n)
	}
	r.ring = to.ring
}

// memory gives the memory for the receipts of a message with n requests.
func (r *receipts) memory(n int) (taken guard.TakenAll) {
	if r.spare.Cap() <= 2*n { // A small message must not hold the memory of a large one.
		taken, r.spare = r.spare, guard.TakenAll{}
	}
	return taken
}

// fill keeps what a message took, until a time. n is the number of its requests that took anything.
func (r *receipts) fill(message uint64, until time.Time, taken guard.TakenAll, n int) (kept int) {
	if message < r.first {
		return 0 // Newer messages have displaced it.
	}
	segment := r.at(message)
	if segment.until = until; n == 0 {
		r.reuse(taken)
		return 0
	}
	segment.taken, segment.count, segment.size = taken, n, taken.Size()
	r.held += segment.size
	r.count += n
	return n
}

// reuse keeps the memory of a segment for the next message, unless it is much.
func (r *receipts) reuse(taken guard.TakenAll) {
	const most = 128 << 10 // A message of 1,000 requests with one limit has half of it.
	if taken.Reset(); taken.Size() <= most {
		r.spare = taken
	}
}

// drop drops the oldest segment, and gives the number of its receipts.
func (r *receipts) drop() (dropped int) {
	s := r.at(r.first)
	dropped = s.count
	if s.taken.Len() > 0 {
		r.reuse(s.taken)
	}
	r.held -= s.size
	*s = segment{}
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

// expire drops the segments whose time has passed, and memory that the others do not need.
func (r *receipts) expire(now time.Time) (dropped int) {
	for r.first < r.next {
		if segment := r.at(r.first); segment.until.IsZero() || segment.until.After(now) {
			r.shrink()
			return dropped
		}
		dropped += r.drop()
	}
	r.ring, r.spare = nil, guard.TakenAll{}
	return dropped
}

// shrink halves a ring of which less than a quarter is used.
func (r *receipts) shrink() {
	if half := len(r.ring) / 2; half >= leastRing && r.next-r.first < uint64(half/2) {
		r.resize(half)
	}
}

// take removes the receipt of a request, and gives what it took. A receipt whose time has passed is not found, also
// if expire has not dropped it yet.
func (r *receipts) take(message uint64, index uint32, now time.Time) (guard.Taken, bool) {
	if message < r.first || message >= r.next {
		return guard.Taken{}, false
	}
	segment := r.at(message)
	if !segment.until.After(now) {
		return guard.Taken{}, false
	}
	taken := segment.taken.Take(int(index))
	if taken.Empty() {
		return taken, false
	}
	segment.count--
	r.count--
	return taken, true
}
