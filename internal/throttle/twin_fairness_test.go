package throttle

import "time"

// fairness checks that no tenant starves within a bucket. It knows no start tags, only how much
// work each tenant got.
//
// The rule: while a request of tenant A is queued, another tenant B of the same bucket gets at most
//
//	what A got in advance + what B was given back + one request
//
// A got in advance the work of its last dispatch, corrected by requests that ended since. B was
// given back what its requests took less than predicted, since B has a queue.
type fairness struct{ flows []*fairFlow }

// twinFlow names the queue of a tenant in a bucket.
type twinFlow struct {
	account *twinAccount
	bucket  int
}

type fairFlow struct {
	twinFlow

	queued  int
	debt    time.Duration // what the tenant got in advance
	credit  time.Duration // what it was given back
	advance time.Duration // the debt when the wait of its first request began, corrected since
	rivals  map[twinFlow]*rival
}

// rival is what another tenant got while the first request of a flow waited.
type rival struct{ credit, got time.Duration }

func flowOf(r *twinRequest) twinFlow { return twinFlow{r.account, r.bucket} }

func (f *fairness) flow(key twinFlow) *fairFlow {
	for _, flow := range f.flows {
		if flow.twinFlow == key {
			return flow
		}
	}
	flow := &fairFlow{twinFlow: key}
	f.flows = append(f.flows, flow)
	return flow
}

// others returns the flows with a queue in the same bucket.
func (f *fairness) others(key twinFlow) []*fairFlow {
	var all []*fairFlow
	for _, flow := range f.flows {
		if flow.twinFlow != key && flow.bucket == key.bucket && flow.queued > 0 {
			all = append(all, flow)
		}
	}
	return all
}

// begins notes that the wait of the first request of a flow begins.
func (f *fairness) begins(key twinFlow) {
	flow := f.flow(key)
	flow.advance, flow.rivals = max(flow.debt, 0), map[twinFlow]*rival{}
	for _, other := range f.others(key) {
		flow.rivals[other.twinFlow] = &rival{credit: other.credit}
	}
}

// joins notes a request that is queued.
func (f *fairness) joins(r *twinRequest) {
	key := flowOf(r)
	flow := f.flow(key)
	if flow.queued++; flow.queued > 1 {
		return
	}
	flow.credit = 0
	f.begins(key)
	for _, other := range f.others(key) {
		if other.rivals[key] == nil {
			other.rivals[key] = &rival{}
		}
	}
}

// leaves notes a request that leaves the queue without service. The next one inherits its place.
func (f *fairness) leaves(r *twinRequest) { f.flow(flowOf(r)).queued-- }

// dispatched notes a request that goes to the service, and reports whether no other one starves.
func (f *fairness) dispatched(r *twinRequest) bool {
	key, fair := flowOf(r), true
	for _, other := range f.others(key) {
		with := other.rivals[key]
		fair = fair && with.got <= other.advance+with.credit
		with.got += r.need.work
	}
	flow := f.flow(key)
	flow.debt = r.need.work
	if flow.queued--; flow.queued > 0 {
		f.begins(key)
	}
	return fair
}

// ends notes the end of a request that took more work than predicted, or less. A request that
// did not wait has no part in the order, so it moves nothing. charged is the part of more that its
// tenant is charged with: a long answer must not keep a tenant out of the queue.
func (f *fairness) ends(r *twinRequest, more, charged time.Duration) {
	if !r.charged {
		return
	}
	key := flowOf(r)
	flow := f.flow(key)
	flow.debt += more
	flow.advance += more
	if flow.queued > 0 {
		flow.credit += max(-more, 0)
	}
	for _, other := range f.others(key) {
		if with := other.rivals[key]; with != nil {
			with.credit -= charged
		}
	}
}
