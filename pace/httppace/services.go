package httppace

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/internal/throttle"
)

// Context gives the context for the requests that the handler of r sends: r's own, with the class and the
// deadline that the throttle before the handler has stated. The caller calls cancel when the handler
// returns. Use it behind Headgate alone: other clients can state anything.
func Context(r *http.Request) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = r.Context(), func() {}
	if class, err := throttle.ParseClass(r.Header.Get(throttle.FieldCriticality)); err == nil {
		ctx = throttle.WithClass(ctx, class)
	}
	const digits = 12
	text := r.Header.Get(throttle.FieldTimeout)
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 && len(text) <= digits {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	return ctx, cancel
}

// exchange is one request to a service of Config.Services, with its retries.
type exchange struct {
	transport *Transport
	service   *adaptive.Service
	listener  *backoff.Listener // nil if the request is not paced
	class     throttle.Class
	retry     retry
}

// toService sends a request to a service, unless the service refuses too many.
func (t *Transport) toService(s *adaptive.Service, l *backoff.Listener, units int64, req *http.Request) (*http.Response, error) {
	class, stated := throttle.ClassFrom(req.Context())
	if !stated {
		class = throttle.SheddablePlus
	}
	e := exchange{transport: t, service: s, listener: l, class: class}
	e.retry = retry{transport: t, listener: l, req: req, units: units, left: backoff.MaxWait(req.Context(), t.config.MaxWait)}
	if err := s.Begin(t.now(), class, rand.Float64(), false); err != nil {
		closeBody(req)
		return nil, err //nolint:wrapcheck // The error names the package.
	}
	if l != nil {
		began := time.Now()
		if err := l.Acquire(req.Context(), units, e.retry.left); err != nil {
			s.Canceled(t.now(), class)
			closeBody(req)
			return nil, err //nolint:wrapcheck // As without a service.
		}
		e.retry.left = less(e.retry.left, time.Since(began))
	}
	return e.run(marked(req, class, stated))
}

// run sends the request, and sends it again while the service refuses it and a retry is allowed.
func (e *exchange) run(first *http.Request) (*http.Response, error) {
	resp, advice, err := e.send(first, false)
	for range e.transport.config.Retries {
		if err != nil || resp == nil || advice.Kind != feedback.Refused {
			break
		}
		if !e.retry.may(resp, advice) || !e.service.Retry(e.transport.now()) {
			break
		}
		keep(resp)
		again := e.ready(advice)
		if err := first.Context().Err(); err != nil {
			_ = resp.Body.Close()
			if again != nil {
				closeBody(again)
			}
			return nil, err //nolint:wrapcheck // The caller's own.
		}
		if again == nil {
			break
		}
		if e.service.Begin(e.transport.now(), e.class, rand.Float64(), true) != nil {
			closeBody(again)
			break
		}
		_ = resp.Body.Close()
		resp, advice, err = e.send(again, true)
	}
	if resp != nil && resp.Request != nil {
		resp.Request = e.retry.req
	}
	return resp, err
}

// ready waits until the request may be sent again, and gives it a new body; nil if there is no time.
func (e *exchange) ready(advice feedback.Advice) *http.Request {
	if e.listener == nil {
		timer := time.NewTimer(min(advice.For, e.retry.left))
		defer timer.Stop()
		select {
		case <-timer.C:
			e.retry.left = less(e.retry.left, advice.For)
		case <-e.retry.req.Context().Done():
			return nil
		}
	}
	again := e.retry.ready()
	if again == nil {
		return nil
	}
	class, stated := throttle.ClassFrom(again.Context())
	if !stated {
		class = e.class
	}
	return marked(again, class, stated)
}

// send sends the request once, and counts what the service did with it.
func (e *exchange) send(req *http.Request, again bool) (resp *http.Response, advice feedback.Advice, err error) {
	if e.listener != nil {
		resp, advice, err = e.transport.send(e.listener, req, e.listener.Sending(again))
	} else if resp, err = e.transport.base.RoundTrip(req); err == nil && resp != nil {
		advice = feedback.HTTP(resp.StatusCode, resp.Header, time.Now())
	}
	switch {
	case err != nil && errors.Is(req.Context().Err(), context.Canceled):
		e.service.Canceled(e.transport.now(), e.class)
	case err == nil && resp != nil && resp.StatusCode != http.StatusServiceUnavailable:
		e.service.Accepted(e.transport.now(), e.class)
	}
	return resp, advice, err
}

// marked gives a copy of the request that states its class and its deadline.
func marked(req *http.Request, class throttle.Class, stated bool) *http.Request {
	ms, bounded := throttle.TimeoutFrom(req.Context(), time.Now())
	if !stated && !bounded {
		return req
	}
	with := req.WithContext(req.Context())
	if with.Header = req.Header.Clone(); with.Header == nil {
		with.Header = http.Header{}
	}
	if stated {
		with.Header.Set(throttle.FieldCriticality, class.String())
	}
	if bounded {
		with.Header.Set(throttle.FieldTimeout, strconv.FormatInt(ms, 10))
	}
	return with
}

// now is the time of the counts.
func (t *Transport) now() headgate.Instant { return headgate.Instant(time.Since(t.made)) }
