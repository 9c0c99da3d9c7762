package throttle

import (
	"math/rand/v2"
	"testing"
	"time"
)

// slowQueue is the slow twin of queue: a list of all requests in the order of arrival, and the
// start tags of tenants in maps.
type slowQueue struct {
	requests []*Request
	start    [bucketCount]map[*tenant]time.Duration
	virtual  [bucketCount]time.Duration
}

func newSlowQueue() *slowQueue {
	q := &slowQueue{}
	for i := range q.start {
		q.start[i] = map[*tenant]time.Duration{}
	}
	return q
}

// ofTenant lists the requests of a tenant in a bucket; a nil tenant stands for all.
func (q *slowQueue) ofTenant(bucket uint8, who *tenant) []*Request {
	var all []*Request
	for _, r := range q.requests {
		if r.bucket == bucket && (who == nil || r.tenant == who) {
			all = append(all, r)
		}
	}
	return all
}

func (q *slowQueue) push(r *Request) {
	if len(q.ofTenant(r.bucket, r.tenant)) == 0 {
		q.start[r.bucket][r.tenant] = max(q.start[r.bucket][r.tenant], q.virtual[r.bucket])
	}
	q.requests = append(q.requests, r)
}

func (q *slowQueue) remove(r *Request) {
	for i, other := range q.requests {
		if other == r {
			q.requests = append(q.requests[:i:i], q.requests[i+1:]...)
			return
		}
	}
}

func (q *slowQueue) dispatch(r *Request) {
	tag := q.start[r.bucket][r.tenant]
	q.virtual[r.bucket] = max(q.virtual[r.bucket], tag)
	q.start[r.bucket][r.tenant] = tag + r.need.work
	q.remove(r)
}

// mayGo reports whether the rules of the order allow r to go next: none in an earlier bucket, no
// tenant with an earlier start tag, and no earlier request of its own tenant.
func (q *slowQueue) mayGo(r *Request) bool {
	for bucket := range r.bucket {
		if len(q.ofTenant(bucket, nil)) > 0 {
			return false
		}
	}
	for _, other := range q.ofTenant(r.bucket, nil) {
		if q.start[r.bucket][other.tenant] < q.start[r.bucket][r.tenant] {
			return false
		}
	}
	return q.ofTenant(r.bucket, r.tenant)[0] == r
}

// excess is the queued work of a tenant in a bucket without its newest request.
func (q *slowQueue) excess(bucket uint8, who *tenant) time.Duration {
	var sum time.Duration
	all := q.ofTenant(bucket, who)
	for _, r := range all[:len(all)-1] {
		sum += r.need.work
	}
	return sum
}

// mayLose reports whether the rules allow r to lose its place.
func (q *slowQueue) mayLose(r *Request) bool {
	for bucket := r.bucket + 1; bucket < uint8(bucketCount); bucket++ {
		if len(q.ofTenant(bucket, nil)) > 0 {
			return false
		}
	}
	for _, other := range q.ofTenant(r.bucket, nil) {
		if q.excess(r.bucket, other.tenant) > q.excess(r.bucket, r.tenant) {
			return false
		}
	}
	own := q.ofTenant(r.bucket, r.tenant)
	return own[len(own)-1] == r
}

func (q *slowQueue) work() time.Duration {
	var sum time.Duration
	for _, r := range q.requests {
		sum += r.need.work
	}
	return sum
}

// TestQueueIsItsTwin compares random steps with the twin: the order of dispatch, the choice of the
// request that loses its place, removals, corrections, and the sums.
func TestQueueIsItsTwin(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		q, slow, tenants := &queue{}, newSlowQueue(), make([]tenant, 1+random.IntN(6))
		for range 300 {
			stepBoth(t, random, q, slow, tenants)
			if q.length != len(slow.requests) || q.work != slow.work() {
				t.Fatalf("seed %d: %d requests with %v of work, want %d with %v", seed, q.length, q.work, len(slow.requests), slow.work())
			}
			if first := q.first(); first != nil && !slow.mayGo(first) {
				t.Fatalf("seed %d: a request of bucket %d goes first, against the order", seed, first.bucket)
			}
			if victim := q.victim(); victim != nil && !slow.mayLose(victim) {
				t.Fatalf("seed %d: a request of bucket %d loses its place, against the order", seed, victim.bucket)
			}
		}
	}
}

// stepBoth makes one random step in both queues.
func stepBoth(t *testing.T, random *rand.Rand, q *queue, slow *slowQueue, tenants []tenant) {
	t.Helper()
	switch step := random.IntN(10); {
	case step < 5 || q.length == 0:
		r := &Request{tenant: &tenants[random.IntN(len(tenants))], bucket: uint8(random.IntN(bucketCount))}
		r.need.work = time.Duration(random.IntN(100))
		q.push(r)
		slow.push(r)
	case step < 7:
		r := q.first()
		q.dispatch(r)
		slow.dispatch(r)
	case step < 8:
		r := q.victim()
		q.remove(r)
		slow.remove(r)
	case step < 9:
		r := slow.requests[random.IntN(len(slow.requests))]
		q.remove(r)
		slow.remove(r)
	default:
		r := &Request{tenant: &tenants[random.IntN(len(tenants))], bucket: uint8(random.IntN(bucketCount)), charged: random.IntN(4) > 0}
		more := time.Duration(random.IntN(200) - 100)
		q.correct(r, more)
		if r.charged {
			slow.start[r.bucket][r.tenant] += more
		}
	}
}
