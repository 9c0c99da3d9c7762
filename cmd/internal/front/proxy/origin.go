package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// count counts the answer of an exchange by its origin and status.
func (p *Proxy) count(client context.Context, x *exchange) {
	from, status := x.origin(client), x.status
	switch status {
	case 0:
		status = http.StatusSwitchingProtocols
	case statusClientGone:
		status = 0
	}
	p.traffic.Answered(from, status)
	if from == report.OriginHeadgate {
		x.place.noService()
	}
}

// origin returns which side the answer comes from.
func (x *exchange) origin(client context.Context) report.Origin {
	switch {
	case !x.forwarded || x.end == guard.BrokenRequest || x.end == guard.Stopped:
		return report.OriginHeadgate
	case x.end == guard.Failed:
		return report.OriginFailure
	case x.finished || x.end != guard.Answered || client.Err() != nil || x.body.failed() || x.stopped():
		return report.OriginService
	default: // The answer broke off, and no other side did it.
		return report.OriginFailure
	}
}

// times are those of one request, by the clock of its places; 0 if there is none. The handler's goroutine alone uses them.
type times struct {
	began     int64 // the header has arrived
	forwarded int64 // the decision has been made
	answered  int64 // the first byte of the service's answer goes to the client
}

// write notes that a part of the answer goes to the client.
func (t *times) write(now int64) {
	if t.answered == 0 && t.forwarded != 0 {
		t.answered = now
	}
}

// startRequest notes that a request begins.
func (at *place) startRequest(now time.Time) { at.times = times{began: at.in.clock.At(now)} }

// startService notes that the request goes to the service. at is nil in some tests.
func (at *place) startService(now time.Time) {
	if at != nil {
		at.times.forwarded = at.in.clock.At(now)
	}
}

// upgrade notes that the service has upgraded the connection.
func (at *place) upgrade(now time.Time) {
	if at != nil {
		at.times.write(at.in.clock.At(now))
	}
}

// noService notes that the answer is not the service's, so that it says nothing about the service's time.
func (at *place) noService() {
	if at != nil {
		at.times.forwarded = 0
	}
}

// observe counts the times of a request whose handler ends now. The length of an upgraded connection is not the time of a request.
func (at *place) observe(t *report.Traffic, now time.Time, upgraded bool) {
	end := at.in.clock.At(now)
	if at.times.forwarded != 0 {
		at.times.write(end) // The answer has no body.
		t.ServiceTime.Observe(time.Duration(at.times.answered - at.times.forwarded))
	}
	if !upgraded {
		t.RequestTime.Observe(time.Duration(end - at.times.began))
	}
}
