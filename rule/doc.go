// Package rule says who sends a request, which rules speak for it, and under which
// key each of them counts it: the steps identify and match of a request's way.
//
// A [Rule] has a [Match] (path, methods, hosts, headers, descriptors) and a key of
// one to three parts (who is counted: an IP, a header, a cookie, a claim ...). An
// [Index] holds many rules and finds those that match without looking at the
// others: it goes from the path to the host, the headers and the descriptor
// entries, by whichever tells the rules apart best, so that ten thousand rules cost
// about what ten do.
//
// [Rule.AppendKey] gives the key. Whatever a client sends, it cannot choose the
// key of another: every element of a key tells its own length, values are bounded
// to 128 bytes (of longer ones a SHA-256 digest counts), and requests that lack a
// value count under a key that no value can imitate. A header, a cookie, a claim or
// an entry that is empty counts as lacking, in keys and in matches. [Rule.KeyText]
// is the same for people. [Overrides] finds the values that have limits of their own.
// [Part.AppendClient] gives the value of one part alone as the name of a client, which
// people and programs read: whatever a client says, it names one client, and nothing
// in it steers a terminal.
//
// An [Identity] knows whom to believe. Of a request that a trusted proxy sends on,
// [Identity.Resolve] finds the sender by X-Forwarded-For or by a header with the
// user's address, the region of that address and the claims of a verified token, as
// far as rules need them ([Rule.Needs]). Of any other request the sender is the
// peer, whatever its headers say. Databases of regions and keys of tokens are behind
// the interfaces [Regions] and [Tokens].
//
// [ParseLimit], [ParseDuration] and [ParsePart] read the words of configurations.
// Their errors, and those of [CheckKey], [NewIndex] and [NewOverrides], say where
// the fault is, what it is and what to write instead.
//
// The package reads no clock, does no I/O and starts no goroutine. An Index, an
// Identity and Overrides never change and may be shared; everything else is a plain
// value.
//
// Start with index.go, then node.go, which it is built of; key.go stands alone, and
// so does identity.go with forwarded.go.
package rule
