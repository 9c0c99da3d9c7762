package memcached

// prefix begins every name that the store uses on a server. It is the version of the form of
// all that is stored there: the names, the items, the counters and the notes of returned
// receipts. A release that changes any of them changes prefix, so that two releases never
// read each other's state. TestItemForm has the form of each prefix.
const prefix = "hg3:"
