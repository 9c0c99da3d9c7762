package client

import "sync"

// bufferBytes holds the usual request head, and the usual answer.
const bufferBytes = 16 << 10

// buffer is the memory of one exchange. It first has the head of the request, and then the
// bytes of the answer.
type buffer struct{ bytes []byte }

// uploadBuffer is the memory of one upload.
type uploadBuffer [32 << 10]byte

var (
	bufferTable       = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, bufferBytes)} }}
	uploadBufferTable = sync.Pool{New: func() any { return new(uploadBuffer) }}
)

//nolint:forcetypeassert,errcheck // because each pool has one type.
func getBuffer() *buffer { return bufferTable.Get().(*buffer) }

//nolint:forcetypeassert,errcheck // as above.
func getUploadBuffer() *uploadBuffer { return uploadBufferTable.Get().(*uploadBuffer) }

func (b *buffer) release() { bufferTable.Put(b) }

func (b *uploadBuffer) release() { uploadBufferTable.Put(b) }
