package throttle

import (
	"fmt"
	"math"
	"strings"

	"github.com/headgate/headgate"
)

// This file has what twins checks after each call and at the end.

func (a answer) String() string {
	if a.reason == headgate.NoRule {
		return a.verdict.String()
	}
	return a.verdict.String() + " " + a.reason.String()
}

// same compares two answers exactly. The retry time is equal to the nanosecond, because both
// compute the same floats.
func (d *twins) same(got, want answer) {
	d.Helper()
	if got != want {
		d.Fatalf("%s\ngot %v after %v, the twin has %v after %v", d.lastSteps(), got, got.retry, want, want.retry)
	}
}

// compare checks the load and the rules after a step.
func (d *twins) compare() {
	d.Helper()
	got, want := d.code.Load(), d.twin.Load()
	if got.Found = 0; got != want {
		d.Fatalf("%s\nthe load is %+v, the twin has %+v", d.lastSteps(), got, want)
	}
	if got, want := d.code.RetryAfter(), d.twin.takes(d.twin.Load().QueuedWork); got != want {
		d.Fatalf("%s\nthe queue drains in %v, the twin says %v", d.lastSteps(), got, want)
	}
	if len(d.twin.faults) > 0 {
		d.Fatalf("%s\n%s", d.lastSteps(), d.twin.faults[0])
	}
	d.workConserving()
}

// workConserving: no request is queued while the service has room for the first one.
func (d *twins) workConserving() {
	d.Helper()
	first := d.twin.firsts()
	for _, r := range first {
		if !d.twin.room(d.now, r) {
			return
		}
	}
	if len(first) > 0 {
		d.Fatalf("%s\nwork conserving: a request waits while the service has room", d.lastSteps())
	}
}

// fairly: no tenant starves within a bucket.
func (d *twins) fairly(r *twinRequest, v headgate.Verdict) {
	d.Helper()
	if v == headgate.Deny {
		d.fair.leaves(r)
	} else if !d.fair.dispatched(r) {
		d.Fatalf("%s\nno starvation: %s of bucket %d gets more than its part", d.lastSteps(), r.Tenant, r.bucket)
	}
}

// empty ends all requests. No slot is lost: nothing of them is left.
func (d *twins) empty() {
	d.Helper()
	for len(d.inFlight)+len(d.waiting) > 0 {
		d.leave(&d.inFlight)
		d.leave(&d.waiting)
		d.next()
		d.compare()
	}
	l := d.code.Load()
	if l.InFlight != 0 || l.CPU != 0 || l.QueuedWork != 0 || l.Queued != [ClassCount]int{} {
		d.Fatalf("%s\nno lost slot: left behind: %+v", d.lastSteps(), l)
	}
	for _, e := range d.code.tenants.known.entries {
		if e.value.requests != 0 {
			d.Fatalf("no lost slot: %s keeps %d requests", e.key, e.value.requests)
		}
	}
	if n := d.code.tenants.others.requests; n != 0 {
		d.Fatalf("no lost slot: the shared account keeps %d requests", n)
	}
	for _, a := range append(d.twin.tenants.known, d.twin.tenants.others) {
		d.plainly(a)
	}
}

// plainly checks that the replayed use of an account is the sum of doc.go.
func (d *twins) plainly(a *twinAccount) {
	d.Helper()
	use, _ := a.use()
	if want, over := a.plainUse(); math.Abs(float64(use)-want) > over {
		d.Fatalf("%s used %v, want %v within %v", a.name, float64(use), want, over)
	}
}

// count counts the kinds of answers and of requests, for the test that all of them happen.
func (d *twins) count(kind string, r *twinRequest) {
	d.seen[kind]++
	if r == nil {
		return
	}
	if r.account == d.twin.tenants.others {
		d.seen["a shared account"]++
	}
	if r.inHang {
		d.seen["a probe of a hang"]++
	}
	if r.bucket >= ClassCount {
		d.seen["beyond the share"]++
	}
	if r.state == admitted && r.level != nil {
		if last := r.level.lessons[len(r.level.lessons)-1]; last.kind == twinProbe {
			d.seen["probe"]++
		}
	}
}

func nameOf(r *Request) string {
	if r == nil {
		return "no request"
	}
	return fmt.Sprint(r.Class, " ", r.Tenant, " ", r.Route)
}

func (d *twins) log(call string, what ...any) {
	d.trace = append(d.trace, fmt.Sprint(d.now-headgate.Instant(3600e9), " ", call, " ", fmt.Sprintln(what...)))
}

// lastSteps returns the end of the trace.
func (d *twins) lastSteps() string {
	return strings.Join(append(d.trace[:1:1], d.trace[max(len(d.trace)-12, 1):]...), "")
}
