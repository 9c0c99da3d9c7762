package memcached

import "github.com/headgate/headgate/internal/store/breaker"

// Breaker configures the circuit breaker of each server.
type Breaker = breaker.Config

// BreakerState is the state of a circuit breaker.
type BreakerState = breaker.State

// Failure is a failed call: its time and its error.
type Failure = breaker.Failure
