package logs_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/internal/testkit/race"
)

// repeated is a log that has one line again and again.
func repeated(c lineCase, lines int) []byte { return bytes.Repeat([]byte(c.line+"\n"), lines) }

func options(c lineCase) logs.Options {
	return logs.Options{Name: "access.log", Format: c.format, Fields: c.fields, Parts: []string{client, "cookie:session"}}
}

// TestAllocations reads lines of each form. After the first lines, none allocates.
func TestAllocations(t *testing.T) {
	const lines = 3000
	for _, c := range lineCases {
		r, err := logs.New(bytes.NewReader(repeated(c, lines)), options(c))
		if err != nil {
			t.Fatal(err)
		}
		var l logs.Line
		n := testing.AllocsPerRun(lines-100, func() {
			if err := r.Next(&l); err != nil {
				t.Error(err)
			}
		})
		if n > 0 && !race.On {
			t.Errorf("%s: %v allocations a line", c.name, n)
		}
	}
}

// BenchmarkNext reads a line of each kind.
func BenchmarkNext(b *testing.B) {
	seen := map[string]bool{}
	for _, c := range lineCases {
		const lines = 10_000
		text := repeated(c, lines)
		r, err := logs.New(bytes.NewReader(text), options(c))
		if err != nil {
			b.Fatal(err)
		}
		if name := r.Kind().Name; !seen[name] {
			seen[name] = true
			b.Run(name, func(b *testing.B) { readAll(b, text, options(c)) })
		}
	}
}

func readAll(b *testing.B, text []byte, o logs.Options) {
	b.Helper()
	b.ReportAllocs()
	var l logs.Line
	var r *logs.Reader
	for range b.N {
		if r == nil {
			var err error
			if r, err = logs.New(bytes.NewReader(text), o); err != nil {
				b.Fatal(err)
			}
		}
		if errors.Is(r.Next(&l), io.EOF) {
			r = nil
		}
	}
}
