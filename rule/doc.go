// Package rule finds the client of a request, the rules that match the request, and
// the key under which each rule counts it.
//
// A [Rule] has a [Match] (path, methods, hosts, headers, descriptors) and a key of one
// to three parts. The key says which requests count together: by IP, header, cookie,
// claim and so on. An [Index] finds the rules that match without testing all rules. An
// Index looks up the path first, and then the host, the headers and the descriptor entries.
// An Index starts with the attribute that separates the rules best, so ten thousand rules
// cost about as much as ten.
//
// [Rule.AppendKey] builds the key. A client cannot choose the key of another client:
//
//   - Every element of a key has its length in front.
//   - Values longer than 128 bytes are replaced by a SHA-256 digest.
//   - Requests without a value count under a key that no value can produce.
//
// An empty header, cookie, claim or descriptor entry counts as missing, in keys and in
// matches. [Rule.KeyText] returns the key as text for people. [Overrides] finds the
// values that have their own limits. [Part.AppendClient] returns the value of one part
// as a client name that is safe to print on a terminal.
//
// An [Identity] knows which proxies are trusted. For a request from a trusted proxy,
// [Identity.Resolve] reads the client address from X-Forwarded-For or from a header
// with the user's address. For other requests the client address is the peer's.
// Resolve also finds the region of the address and the claims of a verified token, as
// far as rules need them ([Rule.Needs]). The interfaces [Regions] and [Tokens] stand
// for the region database and the token keys.
//
// [ParseLimit], [ParseDuration] and [ParsePart] parse texts of the configuration.
// Their errors, and the errors of [CheckKey], [NewIndex] and [NewOverrides], name the
// place and the fault, and say how to correct it.
//
// The package reads no clock, does no I/O and starts no goroutine. An Index, an
// Identity and Overrides are immutable and safe for concurrent use. All other types
// are plain values.
//
// Start with index.go and then node.go, which index.go uses. key.go is independent.
// identity.go and forwarded.go belong together.
package rule
