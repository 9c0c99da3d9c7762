// Package usage reads numbers and texts that JSON states, from bytes as they pass: a document, lines of JSON, an array, server-sent
// events or an AWS event stream, compiled into one Program for all readers.
//
// A Scan never fails, and neither keeps nor delays what it reads. Its state is below 1 KiB, and no event costs an allocation. Pieces
// may end anywhere. Only the containers on the way to a field are parsed. The others are skipped, by brackets and quotes.
package usage
