package client

import (
	"time"

	"github.com/headgate/headgate/internal/lease/bucket"
)

// Source gives the leases of the client to a table of buckets, for the rules of a guard: see package
// [github.com/headgate/headgate/internal/lease/bucket]. A resource with a lease of the table cannot have another one of Lease.
func (k *Client) Source() Source { return source{k} }

type source struct{ client *Client }

// Lease implements Source.
func (s source) Lease(resource string, waiting int64, changed func(bucket.Rate)) (bucket.Lease, error) {
	l, err := s.client.claim(resource, waiting, changed)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// tell gives the state to the table of buckets that has the lease. The caller holds the lock of the client.
func (l *Lease) tell(s State, left time.Duration) {
	if l.notify != nil {
		rate := bucket.Rate{Amount: s.Amount, Left: left, Lost: s.Lost, Slots: s.Slots}
		if s.Refused {
			rate.Fault = s.Fault
		}
		l.notify(rate)
	}
}
