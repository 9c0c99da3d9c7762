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

// The paths of a field are in the order of encoding/json, so that the last value of a document is that of the last path.
var fields = []usage.Field{
	{Paths: []string{"usage.in", "message.usage.in"}},
	{Paths: []string{"delta.usage.out", "usage.out"}, Merge: usage.Last},
	{Paths: []string{"n"}, Merge: usage.Sum},
	{Paths: []string{"usage.details.cached", "usage.in"}, Merge: usage.Max},
	{Paths: []string{"message.model", "model"}, Text: true},
	{Paths: []string{"on", "usage.on"}, Text: true},
}

// random makes bodies.
type random struct{ *rand.Rand }

// strings that look like what is searched for, and have escapes, brackets and quotes.
func (r random) text() string {
	all := []string{
		"", "a", `"usage":{"in":99}`, `\`, `\\"`, "[{", "}]", "data: {}", "é", "😀", "\n\n", "[DONE]", "usage", "in",
		strings.Repeat("long ", 20), strings.Repeat(`"`, 9), strings.Repeat(`\`, 7), "\u2028",
	}
	return all[r.IntN(len(all))]
}

func (r random) name() string {
	all := []string{"usage", "message", "delta", "in", "out", "n", "details", "cached", "model", "on", "x", "choices", "é", `q"`, `b\`}
	if r.IntN(20) == 0 {
		return strings.Repeat("name", 1+r.IntN(80))
	}
	return all[r.IntN(len(all))]
}

func (r random) number() json.Number {
	all := []string{"0", "7", "12", "-3", "1.5", "2e3", "9007199254740991", "9007199254740993000", "0.000125", "1e400", "-0", "123456789012345678"}
	return json.Number(all[r.IntN(len(all))])
}

func (r random) value(depth int) any {
	switch k := r.IntN(9); {
	case k < 3 && depth > 0:
		object := map[string]any{}
		for range r.IntN(5) {
			object[r.name()] = r.value(depth - 1)
		}
		return object
	case k == 3 && depth > 0:
		array := make([]any, r.IntN(4))
		for i := range array {
			array[i] = r.value(depth - 1)
		}
		return array
	case k == 4:
		return r.text()
	case k == 5:
		return []any{nil, true, false}[r.IntN(3)]
	default:
		return r.number()
	}
}

// document makes a document with members in the order of encoding/json, sometimes with spaces and with names in \u escapes.
func (r random) document() []byte {
	object := map[string]any{}
	for range r.IntN(6) {
		object[r.name()] = r.value(4)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	switch r.IntN(4) {
	case 0:
		var spaced bytes.Buffer
		_ = json.Indent(&spaced, text, " ", "\t")
		return spaced.Bytes()
	case 1:
		return bytes.ReplaceAll(text, []byte(`"usage":`), []byte(`"us\u0061ge":`))
	}
	return text
}

// body makes a body of a form.
func (r random) body(form usage.Form) []byte {
	var b []byte
	n := 1 + r.IntN(5)
	switch form {
	case usage.Events:
		end := []string{"\n", "\r\n", "\r"}[r.IntN(3)]
		if r.IntN(4) == 0 {
			b = append(b, "\ufeff"...)
		}
		for range n {
			b = append(b, r.event(end)...)
		}
		if r.IntN(2) == 0 {
			b = append(b, "data: [DONE]"+end+end...)
		}
	case usage.Frames:
		for range n {
			payload := r.document()
			if r.IntN(2) == 0 {
				payload = wrap(payload)
			}
			b = append(b, frame(payload)...)
		}
	default:
		array := r.IntN(3) == 0
		for i := range n {
			if array && i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, r.document()...), []string{"", "\n", " \r\n"}[r.IntN(3)]...)
		}
		if array {
			b = append(append([]byte("["), b...), ']')
		}
	}
	return b
}

func (r random) event(end string) string {
	var b strings.Builder
	if r.IntN(3) == 0 {
		b.WriteString("event: message" + end)
	}
	if r.IntN(3) == 0 {
		b.WriteString(": a comment" + end + "id: 7" + end + "dataset: {\"n\": 5}" + end)
	}
	if r.IntN(6) > 0 {
		lines := strings.FieldsFunc(string(r.document()), func(c rune) bool { return c == '\n' || c == '\r' })
		for _, line := range lines {
			b.WriteString([]string{"data: ", "data:"}[r.IntN(2)] + line + end)
		}
	}
	return b.String() + end
}

// compare reads a body in random pieces, and compares the result with the twin's.
func compare(t *testing.T, r random, s *usage.Scan, p *usage.Program, form usage.Form, body []byte) {
	t.Helper()
	want := twin(fields, form, body)
	s.Reset(p, form)
	for rest := body; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN([]int{1, 7, 40, 1000}[r.IntN(4)]))
		s.Write(rest[:n])
		rest = rest[n:]
	}
	s.End()
	if s.Done() != want.done {
		t.Errorf("done is %v, want %v of %q", s.Done(), want.done, body)
	}
	for i := range fields {
		if text, found := s.Text(i); found || want.texts[i] != "" {
			if whole := want.texts[i]; string(text) != whole && len(whole) <= 128 {
				t.Errorf("text %d is %q, want %q of %q", i, text, whole, body)
			}
		}
		n, found := s.Number(i)
		if wanted, has := want.numbers[i]; !fields[i].Text && (has != found || n != wanted) {
			t.Errorf("number %d is %v (%v), want %v (%v) of %q", i, n, found, wanted, has, body)
		}
	}
}

// againstTwin compares many random bodies.
func againstTwin(t *testing.T, bodies int) {
	t.Helper()
	p, err := usage.Compile(fields)
	if err != nil {
		t.Fatal(err)
	}
	var s usage.Scan
	for form := usage.JSON; form <= usage.Frames; form++ {
		for seed := range bodies {
			r := random{rand.New(rand.NewPCG(uint64(seed), uint64(form)))}
			compare(t, r, &s, p, form, r.body(form))
			if t.Failed() {
				t.Fatalf("form %d, seed %d", form, seed)
			}
		}
	}
}

// TestAgainstTwin: random bodies in random pieces state what encoding/json reads.
func TestAgainstTwin(t *testing.T) { againstTwin(t, 4000) }

// TestStories has the streams of real APIs in short.
func TestStories(t *testing.T) {
	stream := "data: {\"model\":\"m-1\",\"usage\":null}\n\ndata: {\"usage\":{\"in\":3,\"out\":1}}\n\ndata: {\"usage\":{\"in\":3,\"out\":9}}\r\n\r\ndata: [DONE]\n\n"
	for _, story := range []struct {
		what, body string
		form       usage.Form
		in, out    float64
		model      string
		count      int
	}{
		{"a document", `{"model":"m-1","usage":{"in":3,"out":9}}`, usage.JSON, 3, 9, "m-1", 1},
		{"lines of JSON", "{\"model\":\"m-1\"}\n{\"usage\":{\"in\":3,\"out\":9}}\n", usage.JSON, 3, 9, "m-1", 2},
		{"an array", `[{"model":"m-1"},{"usage":{"in":3}},{"usage":{"in":2,"out":9}}]`, usage.JSON, 3, 9, "m-1", 3},
		{"events", stream, usage.Events, 3, 9, "m-1", 3},
		{"a text that looks like usage", `{"text":"\"usage\":{\"in\":8}","usage":{"in":3,"out":9},"model":"m-1"}`, usage.JSON, 3, 9, "m-1", 1},
		{"deep below", `{"choices":[{"usage":{"in":8}}],"usage":{"in":3,"out":9},"model":"m-1"}`, usage.JSON, 3, 9, "m-1", 1},
		{"a number at the very end", `{"usage":{"in":3,"out":9},"model":"m-1"}7`, usage.JSON, 3, 9, "m-1", 2},
		{"what is not JSON", `<html>{"usage":{"in":3,"out":9},"model":"m-1"}`, usage.JSON, 0, 0, "", 5},
		{"frames", string(frame([]byte(`{"model":"m-1"}`))) + string(frame(wrap([]byte(`{"usage":{"in":3,"out":9}}`)))), usage.Frames, 3, 9, "m-1", 2},
		{"a broken frame", "\xff\xff\xff\xff0000crc_", usage.Frames, 0, 0, "", 0},
	} {
		p, _ := usage.Compile(fields)
		var s usage.Scan
		s.Reset(p, story.form)
		s.Write([]byte(story.body))
		s.End()
		in, _ := s.Number(0)
		out, _ := s.Number(1)
		model, _ := s.Text(4)
		if in != story.in || out != story.out || string(model) != story.model || s.Count() != story.count {
			t.Errorf("%s: in %v, out %v, model %q, count %d", story.what, in, out, model, s.Count())
		}
		if s.Broken() != (story.what == "a broken frame") {
			t.Errorf("%s: broken is %v", story.what, s.Broken())
		}
	}
}

// TestBoundary: an answer can end behind a boundary, in whatever pieces its events come.
func TestBoundary(t *testing.T) {
	p, _ := usage.Compile(fields)
	var s usage.Scan
	s.Reset(p, usage.Events)
	for _, piece := range []struct {
		text string
		want int
	}{
		{"data: {}\n\nda", 10}, {"ta: {}\n", -1}, {"\n", 1}, {"data: 1\r\n\r\n", 11}, {": ping\n\ndata: 2\n\ndata", 17}, {": 3\r\n\r", 6}, {"\nx", -1},
	} {
		s.Write([]byte(piece.text))
		if s.Boundary() != piece.want {
			t.Errorf("behind %q: %d, want %d", piece.text, s.Boundary(), piece.want)
		}
	}
	s.Reset(p, usage.JSON)
	for _, piece := range []struct {
		text string
		want int
	}{{"{\"a\":1}\n", 8}, {"{\"b\":", -1}, {"2}\n", 3}, {"{\"b\":\n", -1}} {
		if s.Write([]byte(piece.text)); s.Boundary() != piece.want {
			t.Errorf("behind %q: %d, want %d", piece.text, s.Boundary(), piece.want)
		}
	}
	one := frame([]byte(`{}`))
	s.Reset(p, usage.Frames)
	s.Write(append(one, one[:5]...))
	if s.Boundary() != len(one) {
		t.Errorf("behind a frame: %d, want %d", s.Boundary(), len(one))
	}
}

// TestBounds: the state is small, nothing is allocated, and hostile input is read in one pass: each byte costs at most some constant.
func TestBounds(t *testing.T) {
	if size := unsafe.Sizeof(usage.Scan{}); size > 1024-2*128 {
		t.Errorf("a Scan has %d bytes, and two texts of 128", size)
	}
	p, _ := usage.Compile(fields)
	var s usage.Scan
	bodies := map[usage.Form][]byte{}
	for form := usage.JSON; form <= usage.Frames; form++ {
		for seed := range 200 {
			body := random{rand.New(rand.NewPCG(uint64(seed), 9))}.body(form)
			bodies[form] = append(bodies[form], bytes.ReplaceAll(body, []byte("1e400"), []byte("1e4"))...) // Its error is allocated.
		}
		s.Reset(p, form)
		s.Write(bodies[form])
		if n := testing.AllocsPerRun(20, func() { s.Reset(p, form); s.Write(bodies[form]); s.End() }); n > 0 {
			t.Errorf("form %d: %v allocations", form, n)
		}
	}
	for _, c := range []struct{ fields, of int }{{usage.MaxFields + 1, 0}, {0, usage.MaxTexts + 1}} {
		all := make([]usage.Field, c.fields+c.of)
		for i := range all {
			all[i] = usage.Field{Paths: []string{fmt.Sprint("f", i)}, Text: c.of > 0}
		}
		if _, err := usage.Compile(all); err == nil {
			t.Errorf("%d fields and %d texts are compiled", c.fields, c.of)
		}
	}
	for _, path := range []string{"", "a..b", "a.", strings.Repeat("a", 129), "a.b.c.d.e.f.g.h.i"} {
		if _, err := usage.Compile([]usage.Field{{Paths: []string{path}}}); err == nil {
			t.Errorf("path %q is compiled", path)
		}
	}
}

// FuzzPieces: a body states the same in one piece and in single bytes.
func FuzzPieces(f *testing.F) {
	for form := usage.JSON; form <= usage.Frames; form++ {
		for seed := range uint64(20) {
			f.Add(uint8(form), random{rand.New(rand.NewPCG(seed, 3))}.body(form))
		}
	}
	p, err := usage.Compile(fields)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		var whole, bytewise usage.Scan
		form := usage.Form(kind % 3)
		whole.Reset(p, form)
		whole.Write(body)
		whole.End()
		bytewise.Reset(p, form)
		for i := range body {
			bytewise.Write(body[i : i+1])
		}
		bytewise.End()
		for i := range fields {
			a, foundA := whole.Number(i)
			b, foundB := bytewise.Number(i)
			textA, _ := whole.Text(i)
			textB, _ := bytewise.Text(i)
			if a != b || foundA != foundB || !bytes.Equal(textA, textB) || whole.Count() != bytewise.Count() || whole.Done() != bytewise.Done() {
				t.Errorf("field %d: %v %q in one piece, %v %q in single bytes", i, a, textA, b, textB)
			}
		}
	})
}
