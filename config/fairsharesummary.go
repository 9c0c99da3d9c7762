package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// What package fairshare takes: for a client, for what is there once, and for requests
// that are to count once.
const (
	shareClientBytes = 600
	shareBytes       = 160 << 10
	shareOnceBytes   = 512 << 10
)

// writeFairShare tells in two lines who shares what, and then what is odd about it.
func (c *Config) writeFairShare(b *strings.Builder) {
	f := c.FairShare
	if f == nil {
		return
	}
	anonymous := "anonymous refused"
	if f.Anonymous != "" {
		anonymous = "anonymous as " + rule.ClientName(f.Anonymous)
	}
	fmt.Fprintf(b, "fair share %s: %d units in %s for clients by %s, %s; %s, reclaim %s, reservation %d%%\n",
		f.Mode, f.Capacity, field.FormatDuration(f.Cycle), f.Client, anonymous, f.Division, f.Reclaim, f.Reservation)
	fmt.Fprintf(b, "default share%s: %d for one client, %d each for ten; %d new a cycle, up to %d clients in %s\n",
		pinnedText(f), defaultShare(f, 1), defaultShare(f, 10), f.NewClientsPerCycle, f.MaxClients, field.FormatSize(shareMemory(f)))
	for _, note := range notesOn(f) {
		fmt.Fprintf(b, "note: %s\n", note)
	}
}

func pinnedText(f *guard.FairShare) string {
	if len(f.Weights) == 0 {
		return ""
	}
	return fmt.Sprintf(" beside %d pinned", len(f.Weights))
}

// defaultShare gives the default share of one of n clients that are known beside the
// pinned ones, rounded down.
func defaultShare(f *guard.FairShare, n int64) int64 {
	for _, weight := range f.Weights {
		n += weight
	}
	return f.Capacity / n
}

// shareMemory gives what fair share takes with as many clients as it may have, in
// bytes. It is no part of max_memory.
func shareMemory(f *guard.FairShare) int64 {
	const kib = 1 << 10
	n := shareBytes + shareClientBytes*int64(f.MaxClients)
	if f.CountOnce {
		n += shareOnceBytes
	}
	return (n + kib - 1) / kib * kib
}

// notesOn tells what is allowed and has an effect that is easily overlooked.
func notesOn(f *guard.FairShare) []string {
	var notes []string
	if f.Capacity == 0 {
		notes = append(notes, "a capacity of 0 refuses every client")
	}
	if f.Reservation == 100 {
		notes = append(notes, "with a reservation of 100% every size is a default share: only at_once lends, what nobody uses")
	}
	if n := int64(len(f.Weights)); f.Capacity > 0 && n > f.Capacity {
		notes = append(notes, fmt.Sprintf("%d pinned clients divide %d units: not each of them has one", n, f.Capacity))
	}
	if f.NewClientsPerCycle == 0 || len(f.Weights) == f.MaxClients {
		notes = append(notes, "no client but the pinned ones gets a share of its own")
	}
	return notes
}
