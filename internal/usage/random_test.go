package usage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/usage"
)

// fields are those of all random tests, in the order of twin.values.
func fields() []usage.Field {
	return []usage.Field{
		{Kind: usage.Max, Paths: []string{"usage.in", "response.usage.in"}},
		{Kind: usage.Last, Paths: []string{"usage.in", "n"}},
		{Kind: usage.Sum, Paths: []string{"usage.out.deep"}},
		{Kind: usage.Text, Paths: []string{"model", "response.model"}},
		{Kind: usage.Word, Paths: []string{"type", "done"}, Words: []string{"stop", "true"}},
		{Kind: usage.Length, Paths: []string{"choices.[].text"}},
		{Kind: usage.Max, Paths: []string{"choices.[].n", "usage.list.[].[]"}},
		{Kind: usage.Sum, Fraction: true, Paths: []string{"n", "usage.in"}},
	}
}

func compile(tb testing.TB) *usage.Program {
	tb.Helper()
	p, err := usage.Compile(fields())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// twin finds the same values in documents that encoding/json has decoded, in their order.
type twin struct {
	values [8]int64
	seen   [8]bool
	text   string
}

// walk visits a document with its members in the order of the text: encoding/json's tokens keep duplicates.
func (w *twin) walk(dec *json.Decoder, path string, top bool) {
	token, err := dec.Token()
	if err != nil {
		return
	}
	switch v := token.(type) {
	case json.Delim:
		for dec.More() {
			switch {
			case v == '{':
				name, _ := dec.Token()
				w.walk(dec, strings.TrimPrefix(path+"."+escapeDots(name.(string)), "."), false)
			case top:
				w.walk(dec, path, false)
			default:
				w.walk(dec, strings.TrimPrefix(path+".[]", "."), false)
			}
		}
		_, _ = dec.Token()
	case string:
		w.stringAt(path, v)
	case json.Number:
		w.numberAt(path, v)
	case bool:
		w.wordAt(path, fmt.Sprint(v))
	}
}

// escapeDots keeps a name with a dot, or the name [], from looking like a path.
func escapeDots(name string) string {
	if name == usage.Element || name == "" {
		return "(" + name + ")"
	}
	return strings.ReplaceAll(name, ".", "(dot)")
}

func (w *twin) each(path string, do func(i int, f usage.Field)) {
	for i, f := range fields() {
		for _, p := range f.Paths {
			if p == path {
				do(i, f)
			}
		}
	}
}

func (w *twin) wordAt(path, v string) {
	w.each(path, func(i int, f usage.Field) {
		for _, word := range f.Words {
			if word == v {
				w.values[i], w.seen[i] = 1, true
			}
		}
	})
}

func (w *twin) stringAt(path, v string) {
	w.wordAt(path, v)
	w.each(path, func(i int, f usage.Field) {
		switch f.Kind {
		case usage.Text:
			if len(v) <= 128 {
				w.text, w.seen[i] = v, true
			}
		case usage.Length:
			w.values[i] += int64(len(v))
			w.seen[i] = true
		default:
		}
	})
}

func (w *twin) numberAt(path string, v json.Number) {
	w.each(path, func(i int, f usage.Field) {
		scale, most := big.NewRat(1, 1), new(big.Rat).SetInt64(1<<53-1)
		if f.Fraction {
			scale.SetInt64(1_000_000)
			most.SetInt64(9_000_000_000_000_000_000)
		}
		x, ok := new(big.Rat).SetString(v.String())
		if !ok || strings.HasPrefix(v.String(), "-") || x.Mul(x, scale).Cmp(most) > 0 {
			return
		}
		up := new(big.Int).Add(x.Num(), new(big.Int).Sub(x.Denom(), big.NewInt(1)))
		n := up.Div(up, x.Denom()).Int64()
		switch {
		case f.Kind == usage.Sum:
			w.values[i] += min(n, most.Num().Int64()-w.values[i])
		case f.Kind == usage.Last || f.Kind == usage.Max && (!w.seen[i] || n > w.values[i]):
			w.values[i] = n
		case f.Kind != usage.Max:
			return
		}
		w.seen[i] = true
	})
}

func (w *twin) document(text []byte) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	w.walk(dec, "", true)
}

// source makes random documents.
type source struct{ *rand.Rand }

func (r source) pick(words ...string) string { return words[r.IntN(len(words))] }

func (r source) space() string {
	if r.IntN(4) > 0 {
		return ""
	}
	return r.pick(" ", "\t", "  ")
}

func (r source) name() string {
	return r.pick(`"usage"`, `"in"`, `"n"`, `"out"`, `"deep"`, `"model"`, `"response"`, `"type"`, `"done"`, `"choices"`, `"text"`, `"list"`,
		`"us\u0061ge"`, `"mode\u006C"`, `"x"`, `""`, `"usage.in"`, `"[]"`, `"a\"b"`, `"`+strings.Repeat("k", r.IntN(300))+`"`)
}

func (r source) text() string {
	if r.IntN(10) == 0 {
		return `"` + strings.Repeat("long text, ", r.IntN(30)) + `"`
	}
	return r.pick(`"stop"`, `"true"`, `""`, `"{\"usage\":{\"in\":9}}"`, `"\\"`, `"\\\""`, `"a\\\\"`, `"gpt\u002d4"`, `"[{"`, `"x}]"`, `"\ud83d\ude00"`, `"é"`, `"\/"`)
}

// plain makes strings without escapes, whose length is the same in the document and decoded.
func (r source) plain() string {
	return r.pick(`""`, `"hello"`, `"né"`, `"`+strings.Repeat("z", r.IntN(90))+`"`)
}

func (r source) number() string {
	return r.pick("0", "1", "42", "-3", "1.5", "2e3", "1E2", "0.0001", "9007199254740991", "9007199254740993", "1e400", "123456789012345678901",
		fmt.Sprint(r.IntN(100000)), "-0", "0.0", "1e-5", "0.0000015", "1e-400", "12.5000000000000000000000001", "9e12", "10000000000000", "0.1E+2")
}

func (r source) value(name string, depth int) string {
	if name == `"text"` {
		return r.plain()
	}
	switch k := r.IntN(9); {
	case k < 3 && depth < 12:
		return r.object(depth + 1)
	case k == 3 && depth < 12:
		return r.array(depth + 1)
	case k < 6:
		return r.number()
	case k == 6:
		return r.pick("true", "false", "null")
	default:
		return r.text()
	}
}

func (r source) object(depth int) string {
	var b strings.Builder
	b.WriteString("{" + r.space())
	for i := range r.IntN(6) {
		if i > 0 {
			b.WriteString("," + r.space())
		}
		name := r.name()
		b.WriteString(name + r.space() + ":" + r.space() + r.value(name, depth) + r.space())
	}
	return b.String() + "}"
}

func (r source) array(depth int) string {
	var b strings.Builder
	b.WriteString("[" + r.space())
	for i := range r.IntN(4) {
		if i > 0 {
			b.WriteString("," + r.space())
		}
		b.WriteString(r.value("", depth))
	}
	return b.String() + "]"
}

// document makes a document at the top; "text" at the top would be counted, so that it stays an object.
func (r source) document() string {
	if r.IntN(12) == 0 {
		return r.array(0)
	}
	return r.object(0)
}

// pieces writes a body in random pieces.
func (r source) pieces(s *usage.Scanner, body []byte) {
	most := []int{1, 3, 37, 4096}[r.IntN(4)]
	for len(body) > 0 {
		n := min(1+r.IntN(most), len(body))
		s.Write(body[:n])
		body = body[n:]
	}
	s.End()
}

func compare(t *testing.T, what string, body []byte, s *usage.Scanner, w *twin) {
	t.Helper()
	for i := range w.values {
		v, seen := s.Value(i)
		if fields()[i].Kind == usage.Text {
			if string(s.Text()) != w.text || seen != w.seen[i] {
				t.Fatalf("%s: text %q %v, want %q %v, in\n%s", what, s.Text(), seen, w.text, w.seen[i], body)
			}
			continue
		}
		if v != w.values[i] || seen != w.seen[i] {
			t.Fatalf("%s: field %d is %d %v, want %d %v, in\n%s", what, i, v, seen, w.values[i], w.seen[i], body)
		}
	}
	if s.Broken() {
		t.Fatalf("%s: broken, and is not:\n%s", what, body)
	}
}

// TestRandom compares scans of random bodies in random pieces with encoding/json.
func TestRandom(t *testing.T) {
	p := compile(t)
	for seed := range bodies {
		r := source{rand.New(rand.NewPCG(uint64(seed), 44))}
		var w twin
		var body []byte
		var s usage.Scanner
		format := usage.Format(r.IntN(4))
		s.Begin(p, format)
		for range 1 + r.IntN(4) {
			text := r.document()
			w.document([]byte(text))
			body = append(body, r.wrap(format, text)...)
		}
		r.pieces(&s, body)
		compare(t, fmt.Sprintf("seed %d, format %d", seed, format), body, &s, &w)
	}
}
