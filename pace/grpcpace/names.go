package grpcpace

import (
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/pace/backoff"
)

// Adaptive configures what is dropped before it is sent to a service that refuses many requests.
type Adaptive = adaptive.Config

// DropError is the error of a call that was dropped before it was sent.
type DropError = adaptive.DropError

// Stats counts the calls to one provider, and what its answers said.
type Stats = backoff.Stats
