package prom

import (
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/meter"
	"github.com/headgate/headgate/internal/throttle"
)

// MeteringStats counts the records of metering and their delivery.
type MeteringStats = meter.Stats

// LeaseStats counts the capacity leases that rules spend.
type LeaseStats = bucket.Stats

// Load is the load of a throttle: requests in flight and queued, and their predicted work.
type Load = throttle.Load
