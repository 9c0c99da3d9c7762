// Package rule says which rules speak for a request, and under which key each of
// them counts it: the steps identify and match of a request's way.
//
// A [Rule] has a [Match] (path, methods, hosts, headers) and a key of one to three
// parts (who is counted: an IP, a header, a cookie ...). An [Index] holds many
// rules and finds those that match without looking at the others: it goes from
// the path to the host and the headers, by whichever tells the rules apart best,
// so that ten thousand rules cost about what ten do.
//
// [Rule.AppendKey] gives the key. Whatever a client sends, it cannot choose the
// key of another: every element of a key tells its own length, values are bounded
// to 128 bytes (of longer ones a SHA-256 digest counts), and requests that lack a
// value count under a key that no value can imitate. A header or a cookie that is
// empty counts as lacking, in keys and in matches. [Rule.KeyText] is the same for
// people.
//
// [ParseLimit], [ParseDuration] and [ParsePart] read the words of configurations.
// Their errors, and those of [CheckKey] and [NewIndex], say where the fault is,
// what it is and what to write instead.
//
// The package reads no clock, does no I/O and starts no goroutine. An Index never
// changes and may be shared; everything else is a plain value.
//
// Start with index.go, then node.go, which it is built of; key.go stands alone.
package rule
