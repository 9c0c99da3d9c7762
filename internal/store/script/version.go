package script

// Prefix begins every name of a key in Redis. It is the version of the form of all that is
// stored there: the names, the states of each algorithm, the lists of long logs and the
// notes of returned receipts. A release that changes any of them changes Prefix, so that
// two releases never read each other's state. TestStatesAreKnown has the form of each Prefix.
const Prefix = "hg3:"
