// Package replay shows what the rules of a configuration would have refused in access logs, for headgate replay. It decides the requests
// of the logs with the guard of production in virtual time, counts by rule, key and time, compares two configurations, and suggests limits.
// Start with Run.
//
//	lines -> order -> requests -> engine -> counts -> report
//
// # Order
//
// A server writes a line when a request ends, so arrivals go back in a log. Package order sorts them within Options.Reorder. Several logs
// are read side by side: the one that is furthest back is read on.
//
// # What a log lacks
//
// A request of a line has the values that the rules read, and no others. Run fails with a UsageError if no line has a value that a rule
// reads, and says how to log the value. Options.SkipUnknown leaves such rules out.
//
// # Bounds
//
// Lines that wait for their turn take at most 96 MiB, and statistics by key as much. Beyond that, half of the keys go, by their hashes, and
// the report says that its figures by key are those of a sample. Decisions are always those of all keys.
package replay
