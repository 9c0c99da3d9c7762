package rpc

const (
	// messageBytes is the memory of an unread short response of a stream beside its bytes: its places in the queues of
	// grpc-go. TestMemoryOfUnreadMessages measures it.
	messageBytes = 256
	// groupBytes is what a group of short responses takes. A stream may have a group that does not count: it is a
	// part of its call.
	groupBytes = 32 * messageBytes
	// pooledBytes is the least capacity of a buffer for which grpc-go says when it was sent.
	pooledBytes = 1<<10 + 1
)

// Backlog counts the short responses of one stream that its client has not read. grpc-go stops a stream
// at 64 KiB of unread bytes, and does not count what it needs for each message beside them. A Backlog is
// not safe for concurrent use.
type Backlog struct {
	account *Account
	bytes   int64 // Of the responses since the last group.
}

// NewBacklog returns the Backlog of a stream of a connection. account may be nil: then nothing counts.
func NewBacklog(account *Account) *Backlog { return &Backlog{account: account} }

// Add counts a response that is sent next on the stream. Responses are sent in the order of Add, so the
// last one of a group is sent after all others: it has the memory of the group until then.
func (b *Backlog) Add(r *Response) {
	if r.bytes > 0 {
		return // A long response counts by itself.
	}
	if b.bytes += messageBytes + int64(len(r.encoded)); b.bytes < groupBytes {
		return
	}
	r.encoded = append(make([]byte, 0, pooledBytes), r.encoded...)
	r.count(b.account, b.bytes)
	b.bytes = 0
}
