// Package wire reads and writes messages of Protocol Buffers without generated types. Their texts are
// parts of one copy of a message, and a short field costs about 2 ns. A message has hundreds of
// fields, and generated types take an allocation for most of them.
//
// A reader calls ReadField until its bytes are used up, and ignores unknown fields. A known number
// with another type is an unknown field.
//
// Mismatch explains errors of the connections that carry the messages.
package wire
