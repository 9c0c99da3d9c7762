package throttle

import "time"

// bucketCount is the number of buckets: work within the share of its tenant comes before work
// beyond it, and inside both groups the classes follow each other.
const bucketCount = 2 * ClassCount

// bucketOf returns the position of a class in one of the two groups.
func bucketOf(c Class, within bool) uint8 {
	if within {
		return uint8(c)
	}
	return uint8(ClassCount) + uint8(c)
}

// queue has all queued requests. The first bucket that is not empty goes first.
type queue struct {
	buckets [bucketCount]bucket
	length  int
	work    time.Duration // the predicted work of all queued requests
}

// bucket is fair queueing by start times (Goyal, Vin, Cheng: Start-time Fair Queueing, 1996).
// The virtual time of a bucket is the latest start tag of the requests that it has dispatched.
type bucket struct {
	virtual time.Duration
	length  int
	work    time.Duration
	byStart flowHeap // the flow with the earliest start tag goes first
	byWork  flowHeap // the flow with the most excess loses its newest request first
}

// push appends a request to the flow of its tenant.
func (q *queue) push(r *Request) {
	b, f := &q.buckets[r.bucket], &r.tenant.flows[r.bucket]
	if f.length == 0 {
		f.start = max(f.start, b.virtual)
	}
	f.append(r)
	b.fix(f)
	b.count(1, r.need.work)
	q.count(1, r.need.work)
}

// remove takes a request out of its flow, at any position.
func (q *queue) remove(r *Request) {
	b, f := &q.buckets[r.bucket], &r.tenant.flows[r.bucket]
	f.unlink(r)
	b.fix(f)
	b.count(-1, -r.need.work)
	q.count(-1, -r.need.work)
}

// first returns the request that goes next, or nil.
func (q *queue) first() *Request {
	for i := range q.buckets {
		if b := &q.buckets[i]; b.length > 0 {
			return b.byStart.flows[0].head
		}
	}
	return nil
}

// dispatch removes a request that first returned, and charges its tenant for it.
func (q *queue) dispatch(r *Request) {
	b, f := &q.buckets[r.bucket], &r.tenant.flows[r.bucket]
	b.virtual = max(b.virtual, f.start)
	f.start += r.need.work
	r.charged = true
	q.remove(r)
}

// correct charges a tenant for the work that a request took beyond its prediction. A request that
// did not wait was charged nothing: its correction would add up while no requests are queued. The
// charge moves the tenant at most the time memory behind the others. Without this bound, one long
// answer would keep the tenant out of the queue until all others had done as much work, even hours
// later.
func (q *queue) correct(r *Request, more time.Duration) {
	if !r.charged {
		return
	}
	b, f := &q.buckets[r.bucket], &r.tenant.flows[r.bucket]
	f.start += min(more, max(b.virtual+memory-f.start, 0))
	if f.length > 0 {
		b.fix(f)
	}
}

// victim returns the request that loses its place first, or nil: in the last bucket, the newest
// request of the tenant with the most excess.
func (q *queue) victim() *Request {
	for i := bucketCount - 1; i >= 0; i-- {
		if b := &q.buckets[i]; b.length > 0 {
			return b.byWork.flows[0].tail
		}
	}
	return nil
}

// ahead returns an estimate of the queued work that goes before a new request of the flow.
func (q *queue) ahead(bucket uint8, f *flow) time.Duration {
	var work time.Duration
	for i := range bucket {
		work += q.buckets[i].work
	}
	b := &q.buckets[bucket]
	return work + min(b.work, f.work*time.Duration(len(b.byStart.flows)))
}

func (b *bucket) count(n int, work time.Duration) { b.length += n; b.work += work }
func (q *queue) count(n int, work time.Duration)  { q.length += n; q.work += work }

// fix puts a flow at its place in both heaps, or takes an empty flow out.
func (b *bucket) fix(f *flow) {
	b.byStart.fix(f, startOrder)
	b.byWork.fix(f, workOrder)
}
