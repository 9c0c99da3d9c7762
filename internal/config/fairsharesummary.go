package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// The memory of package fairshare, in bytes: for each client, in total for the fixed parts, and for
// count_once.
const (
	shareClientBytes = 600
	shareBytes       = 160 << 10
	shareOnceBytes   = 512 << 10
)

// writeFairShare writes two lines with the settings of fair share, and a line for each note.
func (c *Config) writeFairShare(b *strings.Builder) {
	f := c.FairShare
	if f == nil {
		return
	}
	anonymous := "anonymous refused"
	if f.Anonymous != "" {
		anonymous = "anonymous as " + rule.ClientName(f.Anonymous)
	}
	fmt.Fprintf(b, "fair share %s: %s in %s for clients by %s, %s; %s, reclaim %s, reservation %d%%\n",
		f.Mode, field.Counted(f.Capacity, "unit"), field.FormatDuration(f.Cycle), f.Client, anonymous, f.Division, f.Reclaim, f.Reservation)
	fmt.Fprintf(b, "default share%s: %d for one client, %d each for ten; %d new a cycle, up to %s in %s\n",
		pinnedText(f), defaultShare(f, 1), defaultShare(f, 10), f.NewClientsPerCycle,
		field.Counted(f.MaxClients, "client"), field.FormatSize(shareMemory(f)))
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

// defaultShare returns the default share of a client, rounded down, when there are n clients
// besides those with weights.
func defaultShare(f *guard.FairShare, n int64) int64 {
	for _, weight := range f.Weights {
		n += weight
	}
	return f.Capacity / n
}

// shareMemory returns the most memory that fair share takes, in bytes. It comes on top of max_memory.
func shareMemory(f *guard.FairShare) int64 {
	const kib = 1 << 10
	n := shareBytes + shareClientBytes*int64(f.MaxClients)
	if f.CountOnce {
		n += shareOnceBytes
	}
	return (n + kib - 1) / kib * kib
}

// notesOn returns notes on valid settings with effects that are easily overlooked.
func notesOn(f *guard.FairShare) []string {
	var notes []string
	if f.Capacity == 0 {
		notes = append(notes, "a capacity of 0 refuses every client")
	}
	if f.Reservation == 100 {
		notes = append(notes, "with a reservation of 100%, every client keeps its default share: only reclaim at_once lends unused shares")
	}
	if n := int64(len(f.Weights)); f.Capacity > 0 && n > f.Capacity {
		notes = append(notes, fmt.Sprintf("%s share %s: some get none", field.Counted(n, "pinned client"),
			field.Counted(f.Capacity, "unit")))
	}
	if f.NewClientsPerCycle == 0 || len(f.Weights) == f.MaxClients {
		notes = append(notes, "only pinned clients get shares of their own")
	}
	return notes
}
