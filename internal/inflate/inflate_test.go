package inflate_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/inflate"
)

// text is a body that compresses to about a half.
func text(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[r.IntN(16)]
	}
	return b
}

// forms are the compressions that services send.
var forms = map[string]struct {
	form   inflate.Form
	writer func(w io.Writer) io.WriteCloser
}{
	"gzip": {inflate.Gzip, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }},
	"zlib": {inflate.Deflate, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }},
	"raw deflate": {inflate.Deflate, func(w io.Writer) io.WriteCloser {
		f, _ := flate.NewWriter(w, flate.DefaultCompression)
		return f
	}},
}

func compress(t *testing.T, writer func(w io.Writer) io.WriteCloser, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := writer(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForms decompresses bodies in pieces of several sizes, with the memory of those before.
func TestForms(t *testing.T) {
	var pool inflate.Pool
	for name, f := range forms {
		for _, length := range []int{0, 1, 2, 5000, 60_000} {
			body := text(length)
			packed := compress(t, f.writer, body)
			for _, size := range []int{1, 37, 65536} {
				var got bytes.Buffer
				s := pool.Start(f.form, func(b []byte) bool { got.Write(b); return true })
				for i := 0; i < len(packed); i += size {
					s.Write(packed[i:min(i+size, len(packed))])
				}
				if err := s.Close(); err != nil || !bytes.Equal(got.Bytes(), body) {
					t.Errorf("%s of %d bytes in pieces of %d: %d bytes and error %v", name, length, size, got.Len(), err)
				}
			}
			s := pool.Start(f.form, func([]byte) bool { return true })
			s.Write(packed[:len(packed)/2])
			if err := s.Close(); err == nil {
				t.Errorf("%s of %d bytes, cut: no error", name, length)
			}
		}
	}
}

// TestFlushed checks that flushed bytes reach the sink before more bytes come, as streams of events need.
func TestFlushed(t *testing.T) {
	var pool inflate.Pool
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, "event")
	_ = w.Flush()
	got := make(chan string, 8)
	s := pool.Start(inflate.Gzip, func(b []byte) bool { got <- string(b); return true })
	s.Write(packed.Bytes())
	select {
	case text := <-got:
		if text != "event" {
			t.Errorf("got %q, want event", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("the flushed bytes did not come")
	}
	if err := s.Close(); err == nil {
		t.Error("the body has no end, and Close gave no error")
	}
}

// TestSlow checks that a writer never waits: a body whose goroutine does not follow is given up.
func TestSlow(t *testing.T) {
	var pool inflate.Pool
	blocked := make(chan struct{})
	var once sync.Once
	reached := make(chan struct{})
	s := pool.Start(inflate.Gzip, func([]byte) bool { once.Do(func() { close(reached) }); <-blocked; return true })
	packed := compress(t, forms["gzip"].writer, text(3<<20))
	s.Write(packed[:64<<10])
	<-reached
	for i := 64 << 10; i < len(packed); i += 32 << 10 { // returns although nothing is read
		s.Write(packed[i:min(i+32<<10, len(packed))])
	}
	close(blocked)
	if err := s.Close(); !errors.Is(err, inflate.ErrSlow) {
		t.Errorf("error %v, want %v", err, inflate.ErrSlow)
	}
	// The memory of the queue is free again: the same Pool takes more than it may keep at once.
	for range 20 {
		s = pool.Start(inflate.Gzip, func([]byte) bool { return false })
		s.Write(packed[:1<<20])
		if err := s.Close(); errors.Is(err, inflate.ErrSlow) {
			t.Fatal("the queue of an earlier body still counts")
		}
	}
}

// TestBomb checks that a small body of many plain bytes does not keep Close for long.
func TestBomb(t *testing.T) {
	var pool inflate.Pool
	packed := compress(t, forms["gzip"].writer, make([]byte, 12<<20))
	var n int
	first := make(chan struct{})
	s := pool.Start(inflate.Gzip, func(b []byte) bool {
		if n == 0 {
			<-first
		}
		n += len(b)
		return true
	})
	s.Write(packed)
	go close(first) // while Close waits, or before: then all bytes are read
	if err := s.Close(); !errors.Is(err, inflate.ErrSlow) && n < 12<<20 {
		t.Errorf("%d bytes and error %v: want all bytes, or %v", n, err, inflate.ErrSlow)
	}
}

// TestMemory measures what open bodies need.
func TestMemory(t *testing.T) {
	var pool inflate.Pool
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text(512))
	_ = w.Flush()
	const streams = 200
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	open := make([]*inflate.Stream, streams)
	read := make(chan struct{}, streams)
	for i := range open {
		open[i] = pool.Start(inflate.Gzip, func([]byte) bool { read <- struct{}{}; return true })
		open[i].Write(packed.Bytes())
	}
	for range streams {
		select {
		case <-read:
		case <-time.After(10 * time.Second):
			t.Fatal("a flushed body was not read")
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / streams
	t.Logf("%d bytes for each open body", each)
	if each > inflate.StateBytes {
		t.Errorf("an open body needs %d bytes, want at most %d", each, inflate.StateBytes)
	}
	for _, s := range open {
		_ = s.Close()
	}
}
