package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// Preview says what Arrive would say about a request now, and changes nothing but the request: its Refusal and RetryAfter. Tenants,
// predictions and the queue stay as they are, also the order in which they give way. wait is how long a queued request probably waits,
// and 0 if the drain rate is not known.
//
// If several requests would lose their places in the queue because its bound was lowered, Preview looks at the first of them.
func (t *Throttler) Preview(now headgate.Instant, r *Request) (v headgate.Verdict, wait time.Duration) {
	defer r.release()
	who, active := t.tenants.preview(now, r.Tenant)
	r.arrived, r.tenant = now, who
	t.predictor.preview(r)
	if r.need = (prediction{}); r.level != nil {
		r.need = r.level.prediction()
	}
	r.Refusal, r.RetryAfter = headgate.NoRule, 0
	r.bucket = bucketOf(r.Class, who.within(r.Class, t.shareOf(active)))
	wait = t.drain.takes(t.queue.ahead(r.bucket, &who.flows[r.bucket]))
	switch {
	case t.queue.length == 0 && t.room(now, r):
		if t.hopeless(now, r, 0) {
			return t.previewRefusal(now, r, headgate.ThrottleDeadline), 0
		}
		return headgate.Allow, 0
	case t.hopeless(now, r, wait):
		return t.previewRefusal(now, r, headgate.ThrottleDeadline), 0
	case t.fullWithOne() && t.victimWith(r):
		return t.previewRefusal(now, r, headgate.ThrottleFull), 0
	default:
		return headgate.Wait, wait
	}
}

func (t *Throttler) previewRefusal(now headgate.Instant, r *Request, why headgate.Reason) headgate.Verdict {
	r.Refusal, r.RetryAfter = why, t.retryAfter(now)
	return headgate.Deny
}

// fullWithOne is full with one more request in the queue, whose work does not count.
func (t *Throttler) fullWithOne() bool {
	if t.queue.length+1 > t.config.MaxWaiters {
		return true
	}
	most, known := t.mostWork()
	return known && float64(t.queue.work) > most
}

// victimWith reports whether a request in the queue would be the first to lose its place.
func (t *Throttler) victimWith(r *Request) bool {
	for i := bucketCount - 1; i > int(r.bucket); i-- {
		if t.queue.buckets[i].length > 0 {
			return false
		}
	}
	flows, own := t.queue.buckets[r.bucket].byWork.flows, &r.tenant.flows[r.bucket]
	return len(flows) == 0 || own.places[workOrder] == 1 || flows[0].excess() < own.work
}

// preview returns a copy of what find returns, and the number of tenants that are active after it.
func (t *tenants) preview(now headgate.Instant, name string) (who *tenant, active int) {
	active = t.active
	var found *tenant
	if e := t.known.entries[name]; e != nil {
		found = &e.value
	} else if t.known.full() {
		if oldest := t.known.oldest(); oldest == nil {
			found = &t.others
		} else if oldest.active {
			active-- // It gives way.
		}
	}
	if found == nil {
		found = &tenant{id: t.known.numbers + 1}
	}
	if !found.active {
		active++
	}
	for quiet := t.first; quiet != nil; quiet = quiet.after {
		if quiet == found {
			continue
		}
		if now.Sub(quiet.seen) <= memory {
			break
		}
		if quiet.requests == 0 && (found.place != nil || quiet != t.known.oldest() || !t.known.full()) {
			active--
		}
	}
	mine := *found
	mine.decay(now)
	return &mine, active
}

// preview is find without a change of the tables.
func (p *predictor) preview(r *Request) {
	r.level = nil
	if p.all.samples >= enough {
		r.level = &p.all
	}
	found := p.routes.entries[r.Route]
	if found == nil {
		return
	}
	if found.value.samples >= enough {
		r.level = &found.value.mean
	}
	if e := p.pairs.entries[pair{found.value.id, r.tenant.id}]; e != nil && e.value.samples >= enough {
		r.level = &e.value
	}
}
