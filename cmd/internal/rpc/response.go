package rpc

import (
	"runtime"

	"google.golang.org/grpc/mem"
)

// Response is an encoded message that a handler returns. Its bytes count for an account until they
// are written to the connection, or their call has ended. One below 1 KiB counts as a part of its
// call, or of the Backlog of its stream.
type Response struct {
	account *Account
	bytes   int64 // What counts for account.
	encoded []byte
	cleanup runtime.Cleanup
}

// NewResponse copies an encoded message. account may be nil: then the bytes do not count.
func NewResponse(account *Account, encoded []byte) *Response {
	r := &Response{encoded: make([]byte, len(encoded))}
	copy(r.encoded, encoded)
	if !mem.IsBelowBufferPoolingThreshold(len(encoded)) {
		r.count(account, int64(len(encoded)))
	}
	return r
}

// count counts bytes until Put.
func (r *Response) count(account *Account, bytes int64) {
	r.account, r.bytes = account, bytes
	account.keep(bytes)
	// grpc-go may drop a response of an ended call without Put: then it counts until it is collected.
	r.cleanup = runtime.AddCleanup(r, func(bytes int64) { account.keep(-bytes) }, bytes)
}

// Encoded gives the message. The caller must not change it.
func (r *Response) Encoded() []byte { return r.encoded }

// Get implements mem.BufferPool. Nothing calls it.
func (r *Response) Get(int) *[]byte { return &r.encoded }

// Put implements mem.BufferPool. It is called once, by the last user of a response that counts.
func (r *Response) Put(*[]byte) {
	r.cleanup.Stop()
	r.account.keep(-r.bytes)
}
