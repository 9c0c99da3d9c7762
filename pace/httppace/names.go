package httppace

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/pace"
)

// Adaptive configures what is dropped before it is sent to a service that refuses many requests.
type Adaptive = adaptive.Config

// DropError is the error of a request that was dropped before it was sent.
type DropError = adaptive.DropError

// Stats counts the calls to one provider, and what its answers said.
type Stats = backoff.Stats

// Advice is what an answer demands of the callers. The zero Advice demands nothing.
type Advice = feedback.Advice

// AdviceKind is what an answer says about the provider's limit.
type AdviceKind = feedback.Kind

// Refused means that the limit refused the call, so that the provider did not execute it.
const Refused AdviceKind = feedback.Refused

// AdviceOf returns the advice of a response that arrived at a time. It allocates nothing.
func AdviceOf(resp *http.Response, arrived time.Time) Advice {
	return feedback.HTTP(resp.StatusCode, resp.Header, arrived)
}

// Listener brakes a pacer by the answers of its provider, for programs that send their calls without a [Transport].
type Listener = backoff.Listener

// NewListener returns a Listener for a pacer.
func NewListener(p *pace.Pacer) *Listener { return backoff.New(p) }
