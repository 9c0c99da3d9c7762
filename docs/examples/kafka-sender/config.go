package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// Config configures a Sender.
type Config struct {
	Options []kgo.Opt // connection to the brokers: kgo.SeedBrokers, TLS, SASL
	Topic   string
	Group   string

	Pacer *pace.Pacer
	// Call makes the call for one record. The argument permit is the time of its permit. After
	// a [*RefusedError], the record waits as long as the error says. Any other error counts as
	// a failed try.
	Call        func(ctx context.Context, r *kgo.Record, permit headgate.Instant) error
	CallTimeout time.Duration // of one call; 0 means 10s

	// Calls is the maximum number of concurrent calls, including calls that wait for a
	// permit. 0 means 256. Calls should exceed the permits in the duration of a call.
	Calls int
	// Backlog is the number of records to read ahead. 0 means 10,000. Each partition has an
	// equal part of the backlog. A partition with a full part is paused until half of the part
	// is free. The backlog can reach twice this number, because brokers send records in
	// batches.
	Backlog int
	// Tries is the number of tries before a record goes to DeadLetter. 0 means 8.
	Tries int
	// DeadLetter is the topic for failed records. If it is empty, failed records are only
	// logged and counted.
	DeadLetter string
	// Drain is the maximum wait for calls in flight when their partition moves to another
	// instance, and when the program ends. 0 means 10s. Drain should be well below the
	// group's rebalance timeout, which is 60s.
	Drain time.Duration

	Logger *slog.Logger // nil means slog.Default()
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
