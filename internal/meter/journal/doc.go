// Package journal keeps records of metering on disk until every output has delivered them.
//
// A journal is a folder of segments: files that only grow, with one epoch and consecutive sequences each. Each record has its
// length and a CRC-32C. The process that opens the journal holds a lock, and begins an epoch with a random name. The id of a
// record is instance, epoch and sequence, so a record that a crash has cut never shares its id with a later one.
//
// Each Reader has a cursor of its own, in a file. A Reader that crashes before its Ack gets records again, so an output delivers at
// least once. A slow Reader does not delay another one. If the files exceed Config.MaxBytes, the oldest segment
// is dropped, and each Reader counts the records that it has not delivered.
package journal
