package throttle

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// This file has the order of a twin's queue. Each function scans all requests.

func (w *twin) queued() []*twinRequest {
	return slices.DeleteFunc(slices.Clone(w.live), func(r *twinRequest) bool { return r.state != queued })
}

// flow returns the queued requests of an account in a bucket, by arrival.
func (w *twin) flow(bucket int, a *twinAccount) []*twinRequest {
	return slices.DeleteFunc(w.queued(), func(r *twinRequest) bool { return r.bucket != bucket || r.account != a })
}

// bucketOf applies the rule of shares. The work of r itself does not count.
func (w *twin) bucketOf(r *twinRequest) int {
	share := time.Hour // Before the drain rate is known, all work is within a share.
	if rate, known := w.drain.rate(); known {
		share = time.Duration(rate * float64(2*time.Second) / float64(max(len(w.tenants.active), 1)))
	}
	used, usedCritical := r.account.use()
	for _, other := range w.queued() {
		if other.account == r.account {
			used += other.need.work
			if other.Class <= Critical {
				usedCritical += other.need.work
			}
		}
	}
	if r.Class <= Critical && usedCritical <= 2*share || r.Class > Critical && used <= share {
		return int(r.Class)
	}
	return ClassCount + int(r.Class)
}

// virtualTime is the latest start tag of the requests that went from the bucket to the service.
func (w *twin) virtualTime(bucket int) time.Duration {
	return slices.Max(append(slices.Clone(w.virtual[bucket]), 0))
}

// order returns all queued requests by bucket, start tag and arrival, and their start tags. The
// tag of a request is the tag of its tenant's first one plus the work between them.
func (w *twin) order() ([]*twinRequest, map[*twinRequest]time.Duration) {
	all, tags := w.queued(), map[*twinRequest]time.Duration{}
	for _, r := range all {
		tags[r] = r.account.start(r.bucket)
		for _, earlier := range w.flow(r.bucket, r.account) {
			if earlier == r {
				break
			}
			tags[r] += earlier.need.work
		}
	}
	slices.SortStableFunc(all, func(a, b *twinRequest) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(tags[a], tags[b]))
	})
	return all, tags
}

// firsts returns the requests that may go first. More than one means a tie of tenants.
func (w *twin) firsts() []*twinRequest {
	all, tags := w.order()
	return slices.DeleteFunc(all, func(r *twinRequest) bool {
		return r.bucket != all[0].bucket || tags[r] != tags[all[0]] || w.flow(r.bucket, r.account)[0] != r
	})
}

// pickFirst returns the request that goes first. When the code returns no request, the twin
// expects a request that finds no room, so that a tie decides nothing.
func (w *twin) pickFirst(now headgate.Instant, allowed []*twinRequest, chosen *Request) *twinRequest {
	if chosen != nil {
		return w.pick("order of dispatch", allowed, chosen)
	}
	for _, r := range allowed {
		if !w.room(now, r) {
			return r
		}
	}
	return allowed[0]
}

// victims returns the requests that may lose their place: of the last bucket that is not empty, of
// a tenant with the most excess there, the newest request.
func (w *twin) victims() []*twinRequest {
	last, most := 0, time.Duration(0)
	for _, r := range w.queued() {
		last = max(last, r.bucket)
	}
	for _, r := range w.queued() {
		if r.bucket == last {
			most = max(most, w.excess(r))
		}
	}
	return slices.DeleteFunc(w.queued(), func(r *twinRequest) bool {
		own := w.flow(r.bucket, r.account)
		return r.bucket != last || own[len(own)-1] != r || w.excess(r) != most
	})
}

// excess is the queued work of the tenant of r in its bucket without its newest request.
func (w *twin) excess(r *twinRequest) time.Duration {
	own := w.flow(r.bucket, r.account)
	return sumOfWork(own[:len(own)-1])
}

// ahead estimates the queued work that goes before r: that of earlier buckets, and in its own
// bucket as much of each tenant as its own tenant has, at most all.
func (w *twin) ahead(r *twinRequest) time.Duration {
	var earlier, same []*twinRequest
	accounts := map[*twinAccount]bool{}
	for _, other := range w.queued() {
		switch {
		case other.bucket < r.bucket:
			earlier = append(earlier, other)
		case other.bucket == r.bucket:
			same, accounts[other.account] = append(same, other), true
		}
	}
	own := sumOfWork(w.flow(r.bucket, r.account))
	return sumOfWork(earlier) + min(sumOfWork(same), own*time.Duration(len(accounts)))
}

func sumOfWork(all []*twinRequest) time.Duration {
	var sum time.Duration
	for _, r := range all {
		sum += r.need.work
	}
	return sum
}
