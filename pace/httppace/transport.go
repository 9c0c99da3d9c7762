package httppace

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/pace"
)

// Transport is an http.RoundTripper that sends each request when its provider's pacer gives a
// permit, and follows the provider's answers. A Transport is safe for concurrent use.
//
// A request without a permit is not sent, and fails with the pacer's error. If no permit can come
// before the request's deadline, it fails at once with a *pace.TimeoutError, which has the
// predicted time.
//
// A request to a host of Config.Services states its class and its deadline. It is dropped, with an
// *adaptive.DropError, while the service refuses many requests of its class.
//
// With Config.Retries, a refused request is sent again at the time that the refusal names: after a
// 429, and after a 503 to a request that may be repeated. The request's deadline and MaxWait bound
// this; otherwise the refusal is returned. Each attempt takes its permits and is counted. A request
// with a body and without GetBody is never sent again.
type Transport struct {
	base      http.RoundTripper
	config    Config
	hosts     *hosts[*backoff.Listener]
	services  *hosts[*adaptive.Service]
	made      time.Time
	listeners backoff.Listeners
}

// New makes a Transport. The caller keeps ownership of the pacers, and closes them.
func New(c Config) (*Transport, error) {
	switch {
	case c.Hosts != nil && c.Pacer != nil, c.Hosts == nil && c.Pacer == nil && len(c.Services) == 0:
		return nil, errHosts
	case c.Retries < 0 || c.Retries > MaxRetries:
		return nil, errRetries
	}
	t := &Transport{base: c.Base, config: c, made: time.Now()}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	var err error
	t.hosts, err = newHosts("Hosts", slices.Collect(maps.Keys(c.Hosts)), func(name string) (*backoff.Listener, error) {
		return t.listeners.Listener(c.Hosts[name]), nil
	})
	if err != nil {
		return nil, err
	}
	t.services, err = newHosts("Services", c.Services, func(name string) (*adaptive.Service, error) {
		return adaptive.NewService(name, c.Adaptive) //nolint:wrapcheck // The error names the field already.
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. For a request that finds its pacer open it
// allocates nothing.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	l, units, err := t.wants(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if req.URL != nil {
		if service, ok := t.services.find(req.URL); ok {
			return t.toService(service, l, units, req)
		}
	}
	if l == nil {
		return t.base.RoundTrip(req)
	}
	wait := backoff.MaxWait(req.Context(), t.config.MaxWait)
	began := time.Now()
	if err := l.Acquire(req.Context(), units, wait); err != nil {
		closeBody(req)
		return nil, err
	}
	sent := l.Sending(false)
	resp, advice, err := t.send(l, req, sent)
	if err != nil || t.config.Retries == 0 || advice.Kind != feedback.Refused {
		return resp, err
	}
	r := retry{transport: t, listener: l, req: req, units: units, left: less(wait, sent.Sub(began))}
	return r.run(resp, advice)
}

// CloseIdleConnections closes those of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// Stats tells what became of the requests to each provider, by name. Providers in
// Config.Hosts are there from the start, others from their first request on.
func (t *Transport) Stats() []Stats { return t.listeners.Stats() }

// wants gives the listener for a request, nil when it is not paced, and its units.
func (t *Transport) wants(req *http.Request) (l *backoff.Listener, units int64, err error) {
	if t.base == nil {
		return nil, 0, fmt.Errorf("httppace: %w", headgate.ErrNotMade)
	}
	var ok bool
	if t.config.Pacer != nil {
		l = t.listeners.Listener(t.config.Pacer(req))
		ok = l != nil
	} else if req.URL != nil {
		l, ok = t.hosts.find(req.URL)
	}
	switch {
	case !ok && t.config.Strict:
		return nil, 0, ErrNoPacer
	case l == nil || t.config.Cost == nil:
		return l, 1, nil
	}
	if units = t.config.Cost(req); units < 0 {
		return nil, 0, errCost
	}
	return l, units, nil
}

// send sends a request that has its permits, and hears the answer.
func (t *Transport) send(
	l *backoff.Listener, req *http.Request, sent time.Time,
) (*http.Response, feedback.Advice, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil || resp == nil {
		return resp, feedback.Advice{}, err
	}
	advice := feedback.HTTP(resp.StatusCode, resp.Header, time.Now())
	l.Observe(advice, sent)
	return resp, advice, nil
}

// closeBody closes the body of a request that is not sent, as RoundTrippers do.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // The caller has got an error instead of this body.
	}
}

// less gives what is left of a time to wait.
func less(wait, waited time.Duration) time.Duration {
	if wait == pace.Forever {
		return wait
	}
	return wait - waited
}
