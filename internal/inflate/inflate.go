// Package inflate reads compressed bodies beside their transfer. A writer hands over its bytes and never waits: a goroutine of each
// body decompresses them. A body that the goroutine cannot follow is given up.
package inflate

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// The bounds of memory.
const (
	// StateBytes bounds what the decompression of one body needs without its queue: 41 KiB and the stack of its goroutine.
	StateBytes = 56 << 10
	// maxQueue bounds the compressed bytes of one body that wait for its goroutine. maxQueued bounds those of all bodies of a Pool.
	maxQueue, maxQueued = 1 << 20, 16 << 20
	// maxLate bounds the plain bytes that are read after Close.
	maxLate = 8 << 20
	// plainSize is the size of the pieces that a sink gets.
	plainSize = 1 << 10
)

// QueuedBytes is the most memory that all queues of a Pool use.
const QueuedBytes = maxQueued

// Form is a compression.
type Form uint8

const (
	// Gzip is the content coding gzip.
	Gzip Form = iota
	// Deflate is the content coding deflate: with the frame of zlib, or without as some services send it.
	Deflate
)

var (
	// ErrSlow means that the body came faster than it can be decompressed, or that too many bytes were left at its end.
	ErrSlow = errors.New("decompression did not keep up with the body")
	// errEnd is the end of the bytes of an unfinished Stream.
	errEnd = io.ErrUnexpectedEOF
)

// Pool has the memory of decompressions that ended, for others. The zero Pool is ready. A Pool is safe for concurrent use.
type Pool struct {
	states sync.Pool
	queued atomic.Int64
}

// state is what one decompression needs.
type state struct {
	gzip  gzip.Reader
	flate io.ReadCloser
	plain [plainSize]byte
}

// Stream decompresses one body. Write and Close are for one goroutine.
type Stream struct {
	pool *Pool
	sink func(plain []byte) bool
	done chan struct{}
	err  error // of the goroutine, once done is closed

	mu     sync.Mutex
	more   sync.Cond // on mu: queue or closed changed
	queue  []byte
	closed bool
	gone   bool // the goroutine has ended, or the stream is given up

	source source
	late   atomic.Bool
}

// Start starts the decompression of a body. The goroutine of the Stream calls sink with pieces of plain bytes until sink returns false,
// and not after Close has returned. Close must follow.
func (p *Pool) Start(form Form, sink func(plain []byte) bool) *Stream {
	s := &Stream{pool: p, sink: sink, done: make(chan struct{})}
	s.more.L = &s.mu
	s.source.stream = s
	go s.run(form)
	return s
}

// Write hands over a piece. Write copies b, and never waits for the decompression.
func (s *Stream) Write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || len(b) == 0 {
		return
	}
	if len(s.queue)+len(b) > maxQueue || s.pool.queued.Add(int64(len(b))) > maxQueued {
		if len(s.queue)+len(b) <= maxQueue {
			s.pool.queued.Add(-int64(len(b)))
		}
		s.gone, s.err = true, ErrSlow
	} else {
		s.queue = append(s.queue, b...)
	}
	s.more.Signal()
}

// Close says that the body has ended, waits for the goroutine, and reports why the body was not read to its end; nil if it was.
// The goroutine reads a bounded number of bytes after Close has been called.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.more.Signal()
	s.mu.Unlock()
	s.late.Store(true)
	<-s.done
	return s.err
}

// run decompresses until the end of the body.
func (s *Stream) run(form Form) {
	defer close(s.done)
	st, ok := s.pool.states.Get().(*state)
	if !ok {
		st = &state{}
	}
	err := s.read(st, form)
	s.source.drop()
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.gone = true
	s.pool.queued.Add(-int64(len(s.queue)))
	s.queue = nil
	s.mu.Unlock()
	s.pool.states.Put(st)
}

// read reads plain bytes into the sink.
func (s *Stream) read(st *state, form Form) error {
	r, err := st.open(form, &s.source)
	if err != nil {
		return err
	}
	late := 0
	for {
		n, err := r.Read(st.plain[:])
		if n > 0 && !s.sink(st.plain[:n]) {
			return nil
		}
		if err != nil {
			return ended(err)
		}
		if !s.late.Load() {
			continue
		}
		if late += n; late > maxLate {
			return ErrSlow
		}
	}
}

// ended gives the error of the end of a body: nil for io.EOF.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// open begins to read a form with the memory of st.
func (st *state) open(form Form, src *source) (io.Reader, error) {
	if form == Gzip {
		if err := st.gzip.Reset(src); err != nil {
			return nil, errEnd
		}
		return &st.gzip, nil
	}
	if err := src.skipZlib(); err != nil {
		return nil, errEnd
	}
	if r, ok := st.flate.(flate.Resetter); ok {
		return st.flate, r.Reset(src, nil)
	}
	st.flate = flate.NewReader(src)
	return st.flate, nil
}

// source gives the bytes of the queue to the goroutine. It is an io.ByteReader, so that flate needs no buffer of its own.
type source struct {
	stream *Stream
	taken  []byte // of the queue
	at     int
	spare  []byte // becomes the queue, so that two buffers serve a body
}

// fill waits for bytes.
func (r *source) fill() error {
	s := r.stream
	r.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed && s.err == nil {
		s.more.Wait()
	}
	if s.err != nil || len(s.queue) == 0 {
		return io.EOF
	}
	r.taken, s.queue, r.spare, r.at = s.queue, r.spare[:0], nil, 0
	return nil
}

// drop forgets the bytes that were read. Large buffers are not kept.
func (r *source) drop() {
	r.stream.pool.queued.Add(-int64(len(r.taken)))
	if cap(r.taken) <= 4<<10 {
		r.spare = r.taken
	}
	r.taken, r.at = nil, 0
}

// ReadByte implements io.ByteReader.
func (r *source) ReadByte() (byte, error) {
	if r.at == len(r.taken) {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	c := r.taken[r.at]
	r.at++
	return c, nil
}

// Read implements io.Reader.
func (r *source) Read(b []byte) (int, error) {
	if r.at == len(r.taken) {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.taken[r.at:])
	r.at += n
	return n, nil
}

// skipZlib skips the two bytes of a frame of zlib, if there is one.
func (r *source) skipZlib() error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return nil
	}
	// No frame: both bytes are read again.
	again := append(head[:], r.taken[r.at:]...)
	r.stream.pool.queued.Add(int64(len(again) - len(r.taken)))
	r.taken, r.at = again, 0
	return nil
}
