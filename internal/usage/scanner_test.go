package usage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate/headgate/internal/usage"
)

// TestBoundaries compares the ends of events with those that are found byte by byte.
func TestBoundaries(t *testing.T) {
	p := compile(t)
	for name, c := range map[string]struct {
		format usage.Format
		body   string
		want   []int // of the body in one-byte pieces
		whole  int   // of the body in one piece
		events int
	}{
		"LF":         {usage.Events, "data: 1\n\ndata: 2\n\nda", []int{9, 18}, 18, 2},
		"CRLF":       {usage.Events, "data: 1\r\n\r\ndata: 2\r\n\r\n", []int{11, 22}, 22, 2},
		"CR":         {usage.Events, "data: 1\r\rdata: 2\r\r", []int{9, 18}, 18, 2},
		"comments":   {usage.Events, ": ping\n\ndata: [DONE]\n\n", []int{8, 22}, 22, 0},
		"lines":      {usage.Lines, "{}\n{}\n{", []int{3, 6}, 6, 2},
		"documents":  {usage.JSON, "{}\n[{},{},1]", nil, -1, 4},
		"cut":        {usage.Events, "data: 1\n", nil, -1, 0},
		"two frames": {usage.Frames, string(frameOf("{}")) + string(frameOf("{}")), []int{len(frameOf("{}")), 2 * len(frameOf("{}"))}, 2 * len(frameOf("{}")), 2},
	} {
		var s usage.Scanner
		s.Begin(p, c.format)
		s.Write([]byte(c.body))
		if s.Boundary() != c.whole || s.Events() != c.events {
			t.Errorf("%s: boundary %d after %d events, want %d after %d", name, s.Boundary(), s.Events(), c.whole, c.events)
		}
		s.Begin(p, c.format)
		var got []int
		for i := range len(c.body) {
			s.Write([]byte{c.body[i]})
			if s.Boundary() == 1 {
				got = append(got, i+1)
			}
		}
		// In one-byte pieces the event of a CRLF ends with its CR, and again with its LF.
		for _, want := range c.want {
			if !bytes.Contains(fmt.Appendln(nil, got), fmt.Append(nil, want)) {
				t.Errorf("%s: boundaries at %v, want %v", name, got, c.want)
			}
		}
	}
}

// FuzzPieces checks that pieces never matter, and that no input panics.
func FuzzPieces(f *testing.F) {
	f.Add([]byte(`{"usage":{"in":5,"out":{"deep":[1]}},"model":"m\u0061"}`), uint8(0), uint64(1))
	f.Add([]byte("data: {\"usage\":\ndata: {\"in\":5}}\r\n\r\ndata: [DONE]\n\n"), uint8(2), uint64(2))
	f.Add(frameOf(`{"bytes":"e30=","p":1}`), uint8(3), uint64(3))
	p := compile(f)
	f.Fuzz(func(t *testing.T, body []byte, format uint8, seed uint64) {
		var whole, parts usage.Scanner
		whole.Begin(p, usage.Format(format%4))
		parts.Begin(p, usage.Format(format%4))
		whole.Write(body)
		whole.End()
		source{rand.New(rand.NewPCG(seed, 1))}.pieces(&parts, body)
		if whole.Events() != parts.Events() || whole.Done() != parts.Done() || whole.Broken() != parts.Broken() || !bytes.Equal(whole.Text(), parts.Text()) {
			t.Fatalf("pieces matter: %d events, done %v, broken %v, text %q; in pieces %d, %v, %v, %q", whole.Events(), whole.Done(),
				whole.Broken(), whole.Text(), parts.Events(), parts.Done(), parts.Broken(), parts.Text())
		}
		for i := range fields() {
			v, seen := whole.Value(i)
			if w, also := parts.Value(i); v != w || seen != also {
				t.Fatalf("pieces matter: field %d is %d %v, in pieces %d %v", i, v, seen, w, also)
			}
		}
	})
}

// FuzzWalk checks that no body of a request panics, and that of valid JSON all strings are seen.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"model":"m","a":["b",{"c":"d"}]}`))
	p := compile(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var v visited
		p.Walk(body, &v)
		if !json.Valid(body) {
			return
		}
		if want := stringsOf(body); len(v.strings) != len(want) {
			t.Fatalf("%d strings, want %d: %q", len(v.strings), len(want), body)
		}
	})
}

// visited has what Walk visits.
type visited struct {
	strings, scalars []string
	fields           []uint64
}

func (v *visited) String(fields uint64, _, text []byte, _ bool) {
	v.strings = append(v.strings, string(text))
	v.fields = append(v.fields, fields)
}

func (v *visited) Scalar(_ uint64, text []byte) { v.scalars = append(v.scalars, string(text)) }

// stringsOf lists the strings of a document that are no names.
func stringsOf(body []byte) (found []string) {
	var of func(v any)
	of = func(v any) {
		switch v := v.(type) {
		case string:
			found = append(found, v)
		case []any:
			for _, e := range v {
				of(e)
			}
		case members:
			for _, m := range v {
				of(m)
			}
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	of(decode(dec))
	return found
}

// members are the values of an object, with those of equal names.
type members []any

func decode(dec *json.Decoder) any {
	token, err := dec.Token()
	if err != nil {
		return nil
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token
	}
	var m members
	for dec.More() {
		if delim == '{' {
			_, _ = dec.Token()
		}
		m = append(m, decode(dec))
	}
	_, _ = dec.Token()
	return m
}

// TestWalk compares the strings of random requests with those of encoding/json.
func TestWalk(t *testing.T) {
	p := compile(t)
	for seed := range uint64(bodies / 4) {
		r := source{rand.New(rand.NewPCG(seed, 45))}
		body := []byte(r.document())
		var v visited
		p.Walk(body, &v)
		want := stringsOf(body)
		if len(want) != len(v.strings) {
			t.Fatalf("seed %d: %d strings, want %d: %s", seed, len(v.strings), len(want), body)
		}
		for i, text := range v.strings {
			if got := string(usage.Unescape(nil, []byte(text))); got != want[i] {
				t.Fatalf("seed %d: string %q, want %q: %s", seed, got, want[i], body)
			}
		}
	}
}

// TestSize checks the bounds of memory.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(usage.Scanner{}); size > 1<<10 {
		t.Errorf("a Scanner has %d bytes, and may have 1024", size)
	}
	p := compile(t)
	for format, body := range samples() {
		var s usage.Scanner
		allocs := testing.AllocsPerRun(20, func() {
			s.Begin(p, usage.Format(format))
			s.Write(body)
			s.End()
		})
		if allocs != 0 {
			t.Errorf("format %d: %v allocations, want none", format, allocs)
		}
		if v, seen := s.Value(0); !seen || v != 12 {
			t.Errorf("format %d: %d, %v, want 12", format, v, seen)
		}
	}
}

// samples are bodies of all formats with escapes, texts and fractions.
func samples() [][]byte {
	document := `{"mod\u0065l":"m\u0061","type":"stop","usage":{"in":11.5,"out":{"deep":1e2}},"choices":[{"text":"` + strings.Repeat("x", 200) + `"}]}`
	return [][]byte{
		[]byte(document), []byte(document + "\n" + document), []byte("data: " + document + "\r\n\r\ndata: [DONE]\r\n\r\n"),
		append(frameOf(document), frameOf(`{"bytes":"e30="}`)...),
	}
}
