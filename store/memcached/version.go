package memcached

// prefix begins every name that the store uses on a server. It is the version of all stored forms:
// the names, the items, the counters and the notes of returned receipts. A release that changes one
// of them changes prefix, so that two releases never read each other's state. TestItemForm has the
// form of each prefix.
const prefix = "hg3:"
