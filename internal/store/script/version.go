package script

// Prefix begins every name of a key in Redis. It is the version of all stored forms: the names, the
// states of each algorithm, the lists of long logs and the notes of returned receipts. A release
// that changes one of them changes Prefix, so that two releases never read each other's state.
// TestStatesAreKnown has the form of each Prefix.
const Prefix = "hg3:"
