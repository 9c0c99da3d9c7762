package ahead

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// source reads body in the given way.
func source(p *Pool, from io.Reader, length, most int64) *Source {
	return &Source{Pool: p, From: from, Length: length, Most: most, Grow: func(int64) bool { return true }, Late: func() bool { return false }}
}

// again reads what a Buffer has, and then the rest of the body.
func again(t *testing.T, b *Buffer, rest io.Reader) []byte {
	t.Helper()
	var all []byte
	piece := make([]byte, 1000)
	for {
		n, err := b.Read(piece)
		all = append(all, piece[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case n == 0:
			left, err := io.ReadAll(rest)
			if err != nil {
				t.Fatal(err)
			}
			return append(all, left...)
		}
	}
}

// TestFill reads random bodies with random bounds, in pieces. Read gives the same bytes, and the rest of the body follows.
func TestFill(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var pool Pool
	for range 400 {
		body := make([]byte, random.IntN(80_000))
		for i := range body {
			body[i] = byte(random.Uint32())
		}
		most, length := int64(1+random.IntN(100_000)), int64(len(body))
		if random.IntN(2) == 0 {
			length = -1
		}
		var from io.Reader = bytes.NewReader(body)
		switch random.IntN(3) {
		case 0:
			from = iotest.HalfReader(from)
		case 1:
			from = iotest.DataErrReader(from)
		}
		var b Buffer
		part, err := b.Fill(source(&pool, from, length, most))
		if err != nil {
			t.Fatal(err)
		}
		n := min(most, int64(len(body)))
		if !bytes.Equal(b.Bytes(), body[:n]) || part != (int64(len(body)) > most) && !(part && length < 0 && int64(len(body)) == most) {
			t.Fatalf("%d bytes of %d with the bound %d were read, part %v", len(b.Bytes()), len(body), most, part)
		}
		if b.Len() != int(n) || !bytes.Equal(again(t, &b, from), body) || b.Len() != 0 {
			t.Fatal("the body is not the same when it is read again")
		}
	}
}

// TestBounds: a body that may take no more memory, or that is late, is read in part. The memory that is asked for covers it.
func TestBounds(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 100_000)
	for _, most := range []int64{0, least, 4 * least} {
		s := source(new(Pool), bytes.NewReader(body), -1, 1<<20)
		s.Grow = func(size int64) bool { return size <= most }
		var b Buffer
		part, err := b.Fill(s)
		if !part || err != nil || int64(len(b.Bytes())) != most || b.Size() > most {
			t.Errorf("memory for %d bytes: %d were read, part %v, %v", most, len(b.Bytes()), part, err)
		}
		if !bytes.Equal(again(t, &b, s.From), body) {
			t.Error("the body is not the same when it is read again")
		}
	}
	s := source(new(Pool), iotest.OneByteReader(bytes.NewReader(body)), 100_000, 1<<20)
	reads := 0
	s.Late = func() bool { reads++; return reads > 10 }
	var b Buffer
	if part, err := b.Fill(s); !part || err != nil || len(b.Bytes()) > 20 {
		t.Errorf("a late body: %d bytes, part %v, %v", len(b.Bytes()), part, err)
	}
}

// TestBrokenBody: the error of a body comes again behind its bytes.
func TestBrokenBody(t *testing.T) {
	var b Buffer
	from := io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(io.ErrUnexpectedEOF))
	part, err := b.Fill(source(new(Pool), from, 10, 10))
	if !part || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("part %v, %v", part, err)
	}
	got, err := io.ReadAll(&b)
	if string(got) != "abc" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPool: a released buffer is used again, and has no bytes of the body before.
func TestPool(t *testing.T) {
	var pool Pool
	for _, size := range []int64{1, least, least + 1, 1 << 20, 3 << 20} {
		b := pool.get(size)
		if int64(cap(b)) < size || len(b) != 0 {
			t.Errorf("a buffer for %d bytes has room for %d", size, cap(b))
		}
		pool.put(b[:cap(b)])
	}
	var b Buffer
	b.Release()
	b.Release()
}
