package rls

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/limit"
)

// Bounds of a request. The server bounds the size of a message.
const (
	maxDescriptors = 1000
	maxEntries     = 32
	maxText        = 4096
	maxDomain      = 4096
)

// Lengths of the units. A month has 30 days, and a year 365.
const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 30 * day
	year  = 365 * day
)

// Decode implements rpc.Request. Before it decodes a request, it checks how many descriptors and
// entries the request has, because a short request may have many, and waits for their memory.
func (c *call) Decode(b []byte) error {
	descriptors, entries, fault := countParts(b)
	if bytes := memoryOf(len(b), descriptors, entries, c.options.Metadata); fault == nil && bytes > free {
		if c.acquired, fault = c.account.Acquire(c.ctx, bytes); fault != nil {
			fault = status.FromContextError(fault).Err()
		}
	}
	if c.fault = fault; c.fault != nil {
		return nil //nolint:nilerr // The handler returns it: an error from here would have the code INTERNAL.
	}
	return c.wire.decode(b)
}

// read fills the requests of the guard.
func (c *call) read() error {
	w := &c.wire
	switch {
	case w.domain == "":
		return status.Error(codes.InvalidArgument, "rate limit domain must not be empty")
	case len(w.descriptors) == 0:
		return status.Error(codes.InvalidArgument, "rate limit descriptor list must not be empty")
	case len(w.domain) > maxDomain:
		return status.Errorf(codes.InvalidArgument, "the domain has %d bytes: send at most %d", len(w.domain), maxDomain)
	}
	c.requests = c.requests[:0]
	permitted := c.access.Client().Rules()
	entries := w.entries
	for i := range w.descriptors {
		d := &w.descriptors[i]
		one := headgate.Request{Domain: w.domain, Descriptors: entries[:d.entries:d.entries], Permitted: permitted}
		entries = entries[d.entries:]
		if err := checkEntries(i, one.Descriptors); err != nil {
			return err
		}
		if err := d.readHits(i, w.hits, &one); err != nil {
			return err
		}
		if err := d.readLimit(i, &one); err != nil {
			return err
		}
		c.requests = append(c.requests, one)
	}
	for len(c.answers) < len(c.requests) {
		c.answers = append(c.answers, guard.Answer{})
	}
	return nil
}

func tooManyDescriptors(n int) error {
	return status.Errorf(codes.InvalidArgument, "there are %d descriptors: send at most %d", n, maxDescriptors)
}

func wrongEntries(i, n int) error {
	return status.Errorf(codes.InvalidArgument, "descriptor %d has %d entries: send 1 to %d", i, n, maxEntries)
}

// checkEntries checks the entries of descriptor i.
func checkEntries(i int, entries headgate.Descriptors) error {
	if len(entries) == 0 || len(entries) > maxEntries {
		return wrongEntries(i, len(entries))
	}
	for j := range entries {
		key, value := entries[j].Name, entries[j].Value
		switch {
		case key == "":
			return status.Errorf(codes.InvalidArgument, "descriptor %d, entry %d: the key is empty: send a key", i, j)
		case len(key) > maxText || len(value) > maxText:
			return status.Errorf(codes.InvalidArgument, "descriptor %d, entry %d: a key or value has %d bytes: send at most %d",
				i, j, max(len(key), len(value)), maxText)
		}
	}
	return nil
}

// readHits reads the hits of descriptor i. common is the hits_addend of the request.
func (d *wireDescriptor) readHits(i int, common uint32, one *headgate.Request) error {
	hits := uint64(max(1, common))
	if d.hasHits {
		hits = d.hits
	}
	switch {
	case hits > headgate.MaxUnits:
		return status.Errorf(codes.InvalidArgument, "descriptor %d: %d hits cannot be counted: send at most %d",
			i, hits, int64(headgate.MaxUnits))
	case hits == 0:
		one.Kind = headgate.Peek
	case d.negative:
		one.Kind = headgate.Refund
	}
	one.Cost = int64(hits)
	return nil
}

// readLimit reads the limit that was sent with descriptor i.
func (d *wireDescriptor) readLimit(i int, one *headgate.Request) error {
	if !d.hasLimit {
		return nil
	}
	per, unit, known := d.limit.length()
	if !known {
		return status.Errorf(codes.InvalidArgument,
			"descriptor %d: the unit of its limit is %s: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", i, unit)
	}
	if d.limit.hasMultiplier {
		longest := limit.MaxPer / per
		if n := time.Duration(d.limit.multiplier); n == 0 || n > longest {
			return status.Errorf(codes.InvalidArgument, "descriptor %d: the unit_multiplier of its limit is %d: send 1 to %d for %s",
				i, n, longest, unit)
		}
		per *= time.Duration(d.limit.multiplier)
	}
	one.Sent = headgate.Limit{Count: int64(d.limit.requests), Per: per}
	return nil
}
