// Package reference compares the answers of `headgate server` with those of envoyproxy/ratelimit, the
// reference, for random limits and random requests. Both run as processes, each with a Redis server.
package reference
