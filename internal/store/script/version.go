package script

// Prefix is the beginning of all keys in Redis. It is the version of all stored forms: the names, the
// states of each algorithm, the lists of long logs and the notes of returned receipts. A release
// that changes one of these forms must change Prefix, so that two releases never read each other's
// state. TestStatesAreKnown checks the stored form of Prefix.
const Prefix = "hg3:"
