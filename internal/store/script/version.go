package script

// Prefix is the beginning of all keys in Redis. It is the version of all stored forms: the names, the
// states of each algorithm, the lists of long logs and the notes of returned receipts. A release
// that changes one of these forms must change Prefix, so that two releases never read each other's
// state. If only the state of one algorithm changes, a new letter in its names is enough.
// TestStatesAreKnown checks the stored form of Prefix.
const Prefix = "hg3:"
