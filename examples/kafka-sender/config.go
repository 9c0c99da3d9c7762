package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// Config says what a Sender reads, and how it calls.
type Config struct {
	Options []kgo.Opt // how brokers are reached: kgo.SeedBrokers, TLS, SASL
	Topic   string
	Group   string

	Pacer *pace.Pacer
	// Call makes the call for one record. Its permit has been given when it is called,
	// at the time it is told. An error that is a [*RefusedError] has the record wait for as
	// long as it says; any other is a try that failed.
	Call        func(ctx context.Context, r *kgo.Record, permit headgate.Instant) error
	CallTimeout time.Duration // of one call: 10s when it is 0

	// Calls bounds the calls at once, those that wait for their permit among them: 256
	// when it is 0. It should be above what the limit gives in the time that a call takes.
	Calls int
	// Backlog is how many records to read ahead: 10,000 when it is 0. Each partition has
	// an even part of it. One that has used its part up is paused until half of it is free
	// again. Since records are read by the bunch, there can be up to twice as many.
	Backlog int
	// Tries is how often a record is tried before it goes to DeadLetter: 8 when it is 0.
	Tries int
	// DeadLetter is the topic for records that failed. When it is empty, they are logged
	// and counted, and that is the end of them.
	DeadLetter string
	// Drain is how long calls under way are waited for when their partition goes to
	// another instance, and when the program ends: 10s when it is 0. It should be well
	// below the group's rebalance timeout, which is 60s.
	Drain time.Duration

	Logger *slog.Logger // slog.Default() when it is nil
}

func (c Config) withDefaults() Config {
	set := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	set(&c.Calls, 256)
	set(&c.Backlog, 10_000)
	set(&c.Tries, 8)
	if c.CallTimeout <= 0 {
		c.CallTimeout = 10 * time.Second
	}
	if c.Drain <= 0 {
		c.Drain = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}
