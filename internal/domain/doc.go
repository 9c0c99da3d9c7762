// Package domain finds the limit for a descriptor in the tree of one domain of a decision server.
//
// A descriptor is a list of entries, each with a name and a value. [Build] makes an [Index] of a
// tree of [Node] values. [Index.Find] follows the tree, one level for each entry. On each level,
// the node with the key and exactly the value of the entry comes first. Otherwise the first node
// in file order with a wildcard that matches the value comes, and then the node with the key and
// without a value. The choice on a level is final: Find never tries another node of that level.
// Node and descriptor must have the same depth.
//
// A * in the value of a node stands for any bytes, also for none, unless the node is Literal. A value may have several. Keys
// are compared byte by byte: a * in a key is an ordinary byte.
//
// A [Match] has the nodes that Find chose. [AppendKey] builds the key of a counter with it, and
// [AppendMetric] the name of a metric. A client cannot choose the key of other entries: every
// element of a key has its length in front, and values longer than 128 bytes are replaced by a
// SHA-256 digest.
//
// Find takes time in proportion to the length of the descriptor. The number of siblings with exact
// values or with wildcards like prefix* adds little. Wildcards with more than one literal part add
// their own test if they share their first part with the value.
//
// The package reads no clock, does no I/O and starts no goroutine. An Index is immutable and safe
// for concurrent use.
package domain
