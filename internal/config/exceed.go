package config

import (
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

const (
	// mostWait bounds max_wait to a day, like the proxy's timeouts. Each waiting request keeps
	// a connection open.
	mostWait = 24 * time.Hour
	// mostWaiters bounds max_waiters. So many waiting requests take several gigabytes.
	mostWaiters = 1_000_000
	// maxMarkValue bounds the header value that action degrade adds to a request, in bytes.
	maxMarkValue = 256
)

// exceedFieldTable lists the fields that belong to only one action.
var exceedFieldTable = [...]struct {
	field  string
	action guard.Action
}{
	{"max_wait", guard.Delay},
	{"max_waiters", guard.Delay},
	{"location", guard.Redirect},
	{"header", guard.Degrade},
	{"value", guard.Degrade},
	{"hard", guard.Degrade},
}

// redirectCodes are the statuses of temporary redirects, and 308.
var redirectCodes = [...]int{http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// exceed reads the section on_exceed, and sets the parts of sh that depend on the action. It
// returns the section, because hard reads a further field once the limits are known.
func (s *section) exceed(x *guard.Exceed, sh *shape) *section {
	e := s.sub(s.declare("on_exceed", field.Taken, "Action for requests over the limit. Default: refuse them."),
		"{action: reject, status: 429}")
	var choices []choice[guard.Action]
	for _, a := range guard.Actions() {
		choices = append(choices, choice[guard.Action]{word: a.String(), value: a})
	}
	oneOf(e, e.declare("action", field.Taken, "reject refuses; delay lets the request wait; redirect sends the client elsewhere; degrade "+
		"lets the request pass with a header; drop closes the connection without an answer."), &x.Action, choices)
	known := !e.blamed(e.pathOf("action"))
	e.record("status")
	for _, own := range exceedFieldTable {
		e.record(own.field)
		e.outline.restrict(own.field, "action", own.action.String())
		if e.has(own.field) && known && own.action != x.Action {
			word := own.action.String()
			e.fault(e.keyOf(own.field), "is only valid with action "+word, "remove it, or use action: "+word)
		}
	}
	if known {
		e.outline.under("action", x.Action.String())
		e.status(x)
		e.action(x, sh)
		e.outline.under("", "")
	}
	e.response(x)
	e.end()
	return e
}

// action reads the fields that belong to the action.
func (s *section) action(x *guard.Exceed, sh *shape) {
	switch x.Action {
	case guard.Delay:
		s.delay(x, sh)
	case guard.Redirect:
		s.required("location", "write where to, like location: https://www.example.com/busy")
		s.location(&x.Location)
	case guard.Degrade:
		s.mark(x)
	default:
	}
}

func (s *section) status(x *guard.Exceed) {
	if x.Action != guard.Redirect {
		status := int64(http.StatusTooManyRequests)
		s.number("status", &status, 400, 599)
		x.Status = int(status)
		return
	}
	x.Status = http.StatusFound
	s.declare("status", field.Taken, "HTTP status of a refusal: 429 by default. For redirect, 302 by default, or 303, "+
		"307 or 308.")
	s.outline.field("status").numbers(x.Status, redirectCodes[:])
	v, ok := s.scalar("status", "a whole number")
	var status int64
	if !ok || !s.wholeNumber(v, &status, 0, math.MaxInt64) {
		return
	}
	if !slices.Contains(redirectCodes[:], int(status)) {
		s.fault(v, fmt.Sprintf("%d is not the status of a temporary redirect", status), "use 302, 303, 307 or 308")
		return
	}
	x.Status = int(status)
}

// delay reads the fields of action delay, and adds the wait to the policies of sh.
func (s *section) delay(x *guard.Exceed, sh *shape) {
	waiters := int64(guard.DefaultMaxWaiters)
	s.number(s.declare("max_waiters", field.Taken, "Bound of the waiting requests of the rule, for all keys together. Each one keeps a "+
		"connection open."), &waiters, 1, mostWaiters)
	x.MaxWaiters = int(waiters)
	s.required("max_wait", "write how long a request may wait, like max_wait: 2s")
	s.duration(s.declare("max_wait", field.Taken, "Longest wait of a request, 1ms to 1d. A request that would wait longer is refused."),
		&x.MaxWait, leastTimeout, mostWait)
	a, by := sh.policy.Algorithm, limit.UsedBy(limit.FieldBurst)
	switch {
	case !sh.known:
	case slices.Contains(by, a):
		sh.policy.MaxWait = x.MaxWait
	default:
		s.fault(s.find(s.pathOf("action")), "delay is not possible with "+a.String(),
			"use algorithm "+words(by)+", or action: reject")
	}
}

// mark reads the header that marks a request over the limit.
func (s *section) mark(x *guard.Exceed) {
	s.required("header", "write the header that tells the service, like header: X-Degraded")
	s.required("value", "write the header's value, like value: yes")
	s.declare("header", field.Taken, "Header that tells the service that the request is over the limit.")
	s.outline.field("header").text("", headerPattern, 1, maxHeaderName)
	if v, ok := s.scalar("header", "the name of a header"); ok {
		s.markHeader(v, x)
	}
	s.outline.field(s.declare("value", field.Taken, "Value of that header.")).text("", markPattern, 1, maxMarkValue)
	v, ok := s.textOf("value", &x.Value)
	if !ok {
		return
	}
	bad := strings.IndexFunc(v.text(), func(c rune) bool { return c < ' ' || c > '~' })
	switch {
	case bad >= 0:
		s.faultAt(v, bad, "has "+quote(v.text()[bad:])+" in it, which is not allowed in a header value", "use printable ASCII")
	case v.text() == "" || strings.TrimSpace(v.text()) != v.text():
		s.fault(v, quote(v.text())+" is empty, or begins or ends with a space", "write a value like yes")
	case len(v.text()) > maxMarkValue:
		s.fault(v, fmt.Sprintf("is %d bytes long", len(v.text())), fmt.Sprintf("use at most %d", maxMarkValue))
	}
}

// markHeader rejects headers that tell a service how to read a request, or who sent it.
func (s *section) markHeader(v value, x *guard.Exceed) {
	const fix = "use another header, like X-Degraded"
	name, ok := s.headerName(v, 0, v.text(), "X-Degraded")
	switch {
	case !ok:
	case meaningOf(name) != "":
		s.fault(v, name+" "+meaningOf(name), fix)
	default:
		x.Header = name
	}
}

// hard reads the limit above which action degrade refuses requests. all are the limits of the
// rule, and of each override. The hard limit must allow more than each of them.
func (s *section) hard(x *guard.Exceed, sh shape, all []limits) {
	if x.Action != guard.Degrade {
		return
	}
	s.outline.field(s.declare("hard", field.Taken, "Limit above which requests are refused.")).written("", limitPattern)
	v, ok := s.scalar("hard", "a limit")
	if !ok || !sh.known {
		return
	}
	l := s.oneLimit(v, sh.policy)
	if len(l.policies) == 0 {
		return
	}
	x.Hard = l.policies[0]
	hard := x.Hard.Limit
	for _, l := range all {
		i, most := strictest(l.policies, hard.Length())
		if i < 0 || most < hard.Count {
			continue
		}
		s.fault(v, fmt.Sprintf("%s refuses requests that keep to %s (%s), which lets %d pass in %s",
			hard, l.policies[i].Limit, l.values[i].path, most, hard.Period()),
			fmt.Sprintf("use at least %s", headgate.Limit{Count: min(most+1, headgate.MaxUnits), Per: hard.Per, Calendar: hard.Calendar}))
		return
	}
}

// strictest returns the index of the limit that admits the fewest units within d, and their
// number. The index is -1 if there is no limit.
func strictest(policies []headgate.Policy, d time.Duration) (which int, most int64) {
	which = -1
	for i, p := range policies {
		if n := mostWithin(p, d); which < 0 || n < most {
			which, most = i, n
		}
	}
	return which, most
}

// mostWithin returns the most units that a client can use within d without exceeding the
// limit, at most MaxUnits. For buckets, this is the capacity, or the rate times d if that is more.
// For windows, it is the count of each window that d touches.
func mostWithin(p headgate.Policy, d time.Duration) int64 {
	times, per := uint64(d), uint64(p.Limit.Length())
	if p.Algorithm != headgate.TokenBucket && p.Algorithm != headgate.LeakyBucket {
		times, per = (times+per-1)/per, 1
	}
	hi, lo := bits.Mul64(uint64(p.Limit.Count), times)
	if hi >= per {
		return headgate.MaxUnits
	}
	units, _ := bits.Div64(hi, lo, per)
	return max(limit.Room(p), int64(min(units, headgate.MaxUnits)))
}
