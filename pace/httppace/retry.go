package httppace

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
)

// retry is a request that was refused, and what is left for it.
type retry struct {
	transport *Transport
	listener  *backoff.Listener // nil for a request to a service that is not paced
	req       *http.Request
	units     int64
	left      time.Duration // for which it may wait
}

// run sends the request again as often as may be, and gives the last answer.
func (r *retry) run(resp *http.Response, advice feedback.Advice) (*http.Response, error) {
	for range r.transport.config.Retries {
		if advice.Kind != feedback.Refused || !r.may(resp, advice) {
			break
		}
		keep(resp)
		again := r.ready()
		if err := r.req.Context().Err(); err != nil { // The caller no longer waits for the answer.
			_ = resp.Body.Close()
			if again != nil {
				closeBody(again)
			}
			return nil, err
		}
		if again == nil {
			break
		}
		_ = resp.Body.Close()
		var err error
		if resp, advice, err = r.transport.send(r.listener, again, r.listener.Sending(true)); err != nil || resp == nil {
			return resp, err
		}
		if resp.Request == again {
			resp.Request = r.req
		}
	}
	return resp, nil
}

// may says whether the request may be sent again, and whether there is time for it.
func (r *retry) may(resp *http.Response, advice feedback.Advice) bool {
	if advice.Unsaid || !replayable(r.req, resp.StatusCode) || advice.For >= r.left {
		return false
	}
	deadline, ok := r.req.Context().Deadline()
	return !ok || advice.For < time.Until(deadline)
}

// ready takes permits for the request, and gives it a new body. It returns nil if either fails: the
// refusal is then returned to the caller.
func (r *retry) ready() *http.Request {
	ctx, began := r.req.Context(), time.Now()
	if r.listener != nil {
		if err := r.listener.Acquire(ctx, r.units, r.left); err != nil {
			return nil
		}
	}
	r.left = less(r.left, time.Since(began))
	again := r.req.WithContext(ctx)
	if again.GetBody == nil {
		return again
	}
	body, err := again.GetBody()
	if err != nil {
		return nil
	}
	again.Body = body
	return again
}

// replayable says whether a request can be sent a second time, and whether it does no
// harm: 429 says that nothing was done, 503 does not.
func replayable(req *http.Request, status int) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	if status == http.StatusTooManyRequests {
		return true
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(req.Header["Idempotency-Key"]) > 0 || len(req.Header["X-Idempotency-Key"]) > 0
}

// maxKept bounds the body of a refusal that is kept while its request waits for a retry. The
// refusal may still be returned to the caller.
const maxKept = 16 << 10

// keep reads the body of a refusal, so that its connection is free while the request waits. A
// longer body stays on its connection.
func keep(resp *http.Response) {
	body := resp.Body
	kept, err := io.ReadAll(io.LimitReader(body, maxKept+1))
	if err == nil && len(kept) <= maxKept {
		_ = body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(kept))
		return
	}
	rest := io.Reader(body)
	if err != nil {
		rest = failed{err}
	}
	resp.Body = rejoined{io.MultiReader(bytes.NewReader(kept), rest), body}
}

// rejoined is a body with its first part already read.
type rejoined struct {
	io.Reader
	io.Closer
}

// failed is a body that could not be read any further.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
