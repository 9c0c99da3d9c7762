package report

import "github.com/headgate/headgate/internal/store/breaker"

// BreakerState is the state of the circuit breaker of a server of a store: closed, open or half_open.
type BreakerState = breaker.State
