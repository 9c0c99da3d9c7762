package httppace

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate/pace"
)

// MaxRetries bounds Config.Retries.
const MaxRetries = 100

// Config says which requests are paced, and how.
type Config struct {
	// Base sends the requests: http.DefaultTransport when it is nil.
	Base http.RoundTripper

	// Hosts gives each host its pacer. A key is a host ("api.example.com"), a host with a port
	// ("api.example.com:8443"), all hosts below a domain ("*.example.com"), or all others ("*").
	// The most specific key counts: a host with a port, then a host, then the longest wildcard.
	// Requests to a host with a nil pacer are not paced.
	Hosts map[string]*pace.Pacer
	// Pacer replaces Hosts: it chooses the pacer of a request. A nil pacer means no pacing. Pacer
	// must return a small, fixed set of pacers.
	Pacer func(*http.Request) *pace.Pacer
	// Strict refuses requests for which there is no pacer, with ErrNoPacer. Otherwise
	// they are sent as they are.
	Strict bool

	// Services are hosts of your own services, written as in Hosts, and paced or not. Their requests
	// state the class of their context (throttle.WithClass) in Headgate-Criticality, and their deadline in
	// Headgate-Timeout. While a service refuses many requests of a class with 503, others are not sent, and
	// fail with an *adaptive.DropError. Retries are at most a part of the requests.
	Services []string
	// Adaptive sets when requests to Services are not sent. All hosts of one entry count together.
	Adaptive Adaptive

	// Cost gives the units that a request takes: 1 when it is nil. A request of 0 units is
	// sent without a permit; less is a fault.
	Cost func(*http.Request) int64
	// MaxWait bounds the total wait of a request for its permits, retries included. 0 means until its
	// deadline, and backoff.DefaultMaxWait, a minute, without a deadline. A negative MaxWait does not
	// wait. An earlier deadline always counts.
	MaxWait time.Duration
	// Retries is how often a request that its provider refused is sent again: see Transport.
	Retries int
}

var (
	// ErrNoPacer says that a request is to a host that Config has no pacer for.
	ErrNoPacer = errors.New("httppace: no pacer for the host of the request: give it one in Config.Hosts, " +
		"or nil there if it need not be paced")
	errHosts   = errors.New("httppace: Config wants Hosts or Pacer, or Services without both")
	errRetries = fmt.Errorf("httppace: Config.Retries is from 0 to %d", MaxRetries)
	errCost    = errors.New("httppace: Config.Cost gave less than 0 units")
)
