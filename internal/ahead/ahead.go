// Package ahead keeps the beginning of a request's body, which is read before the request is decided and again when it is forwarded.
package ahead

import (
	"errors"
	"io"
	"sync"
)

const (
	// least is the size of the smallest buffer. Most requests of model APIs are smaller.
	least = 16 << 10
	// classes is the number of sizes that a Pool keeps, each twice the one before: up to 1 MiB, which is the usual bound of a body. Larger
	// buffers are left to the collector.
	classes = 7
)

// Pool keeps buffers for later bodies. It is safe for concurrent use. The zero Pool is ready.
type Pool struct{ sizes [classes]sync.Pool }

// get returns an empty buffer with room for at least size bytes.
func (p *Pool) get(size int64) []byte {
	capacity, class := int64(least), 0
	for ; capacity < size; class++ {
		capacity *= 2
	}
	if class < classes {
		if b, ok := p.sizes[class].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, capacity)
}

// put keeps a buffer of get.
func (p *Pool) put(b []byte) {
	for class, capacity := 0, least; class < classes; class, capacity = class+1, capacity*2 {
		if cap(b) == capacity {
			p.sizes[class].Put(&b)
			return
		}
	}
}

// Buffer has what was read of one body. The zero Buffer is empty. It is not safe for concurrent use.
type Buffer struct {
	pool  *Pool
	bytes []byte
	at    int   // what of bytes was read again
	end   error // of reading, after bytes; nil if the body goes on
}

// Source says how a body is read into a Buffer.
type Source struct {
	Pool *Pool
	// From is the body, and Length its length, or -1 if it is not known.
	From   io.Reader
	Length int64
	// Most bounds what is read, in bytes.
	Most int64
	// Grow asks for the memory of a buffer of a size in bytes, in place of that of the size before. It returns false if there is none.
	Grow func(size int64) bool
	// Late reports that the rest of the body is not waited for.
	Late func() bool
}

// Fill reads the body to its end, or until one of the bounds of s. part reports that the body may go on. An error says that reading
// has failed: Read gives it again after the bytes before.
func (b *Buffer) Fill(s *Source) (part bool, err error) {
	b.pool, b.bytes, b.at, b.end = s.Pool, nil, 0, nil
	most := s.Most
	if s.Length >= 0 {
		most = min(most, s.Length)
	}
	for int64(len(b.bytes)) < most {
		if len(b.bytes) == cap(b.bytes) && !b.grow(s.Grow, most) || len(b.bytes) > 0 && s.Late() {
			return true, nil
		}
		room := min(int64(cap(b.bytes)), most)
		n, err := s.From.Read(b.bytes[len(b.bytes):room])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if b.end = err; errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return true, err //nolint:wrapcheck // The caller knows the body.
		}
	}
	if int64(len(b.bytes)) == s.Length && s.Length >= 0 {
		return false, b.finish(s.From)
	}
	return true, nil
}

// finish reads the end of a body whose bytes have all been read. Trailers come with it.
func (b *Buffer) finish(from io.Reader) error {
	var none [1]byte
	_, err := from.Read(none[:])
	if b.end = err; err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err //nolint:wrapcheck // The caller knows the body.
}

// grow makes room for more bytes.
func (b *Buffer) grow(asked func(size int64) bool, most int64) bool {
	size := int64(least)
	if n := int64(cap(b.bytes)); n > 0 {
		size = 2 * n
	}
	if size = min(size, roundUp(most)); !asked(size) {
		return false
	}
	next := b.pool.get(size)
	next = append(next, b.bytes...)
	if cap(b.bytes) > 0 {
		b.pool.put(b.bytes)
	}
	b.bytes = next
	return true
}

// roundUp returns the size of a buffer for a number of bytes.
func roundUp(bytes int64) int64 {
	size := int64(least)
	for size < bytes {
		size *= 2
	}
	return size
}

// Bytes returns what was read, until Read or Release.
func (b *Buffer) Bytes() []byte { return b.bytes }

// Len returns how many bytes Read still has.
func (b *Buffer) Len() int { return len(b.bytes) - b.at }

// Size returns the memory of the Buffer, in bytes.
func (b *Buffer) Size() int64 { return int64(cap(b.bytes)) }

// Read reads again what was read. With the last byte, it releases the memory, and err is that with which the reading has ended: io.EOF
// after the whole body. If the body goes on, err is nil, and n is 0 after the last byte.
func (b *Buffer) Read(p []byte) (n int, err error) {
	n = copy(p, b.bytes[b.at:])
	if b.at += n; b.at < len(b.bytes) {
		return n, nil
	}
	b.Release()
	return n, b.end
}

// Release gives the memory back. Further calls do nothing.
func (b *Buffer) Release() {
	if cap(b.bytes) > 0 {
		b.pool.put(b.bytes)
	}
	b.bytes, b.at = nil, 0
}
