package tokens

import (
	"bytes"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/usage"
)

const (
	// maxValue is the longest value of a field: what is behind is cut.
	maxValue = 1 << 10
	// blob is the length from which a string without blanks is an image or a file.
	blob = 256
)

// The fields that estimates read. Those that rules read follow.
const (
	factOutput = iota
	factAnswers
	factStream
	factModel
	facts
)

// compileRequests compiles what is read of requests.
func compileRequests(names []string) (*usage.Program, error) {
	fields := make([]usage.Field, facts, facts+len(names))
	fields[factOutput].Paths = []string{
		"max_completion_tokens", "max_tokens", "max_output_tokens", "generationConfig.maxOutputTokens",
		"generation_config.max_output_tokens", "inferenceConfig.maxTokens", "options.num_predict",
		"max_tokens_to_sample", "max_gen_len", "textGenerationConfig.maxTokenCount",
	}
	fields[factAnswers].Paths = []string{"n", "best_of", "generationConfig.candidateCount", "generation_config.candidate_count"}
	fields[factStream].Paths = []string{"stream"}
	fields[factModel].Paths = []string{"model"}
	for _, name := range names {
		fields = append(fields, usage.Field{Paths: []string{name}})
	}
	return usage.Compile(fields)
}

// Fields are values of the body of a request. The zero Fields is ready for Reader.Request, and may be used again. Fields implement
// headgate.Values for the paths that rules read.
type Fields struct {
	reader *Reader
	body   *headgate.Body
	path   string
	values []span
	space  []byte
	text   string
	model  span
	stream bool
}

// span is a part of Fields.text.
type span struct {
	from, to int
	ok       bool
}

// Lookup gives the value of a path that a rule reads. The path model has the model of the URL if the body names none.
func (f *Fields) Lookup(path string) (value string, ok bool) {
	if f.reader == nil {
		return "", false
	}
	if path == "model" {
		value = f.Model()
		return value, value != ""
	}
	i := slices.Index(f.reader.requestNames, path)
	if i < 0 || i >= len(f.values) || !f.values[i].ok {
		return "", false
	}
	return f.text[f.values[i].from:f.values[i].to], true
}

// Model is the model that the body names, else that of the path; "" if neither names one. The client writes it: escape it.
func (f *Fields) Model() string {
	if f.model.ok {
		return f.text[f.model.from:f.model.to]
	}
	return modelOf(f.path)
}

// Stream reports whether the request asks for a stream.
func (f *Fields) Stream() bool { return f.stream }

// Request reads the body of a request: b gets the facts, and f is the memory behind b.Fields. part says that body is only the begin.
// The strings of f are valid until f is used again. Of members with one name the last counts, as the services read them.
func (r *Reader) Request(b *headgate.Body, f *Fields, path string, body []byte, part bool) {
	*b = headgate.Body{Fields: f, Part: part}
	*f = Fields{reader: r, body: b, path: path, values: resize(f.values, len(r.requestNames)), space: f.space[:0]}
	r.requests.Walk(body, f)
	f.text = string(f.space)
	f.body = nil
}

// resize gives n empty spans, in the memory of old if possible.
func resize(old []span, n int) []span {
	if cap(old) < n {
		return make([]span, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// String implements usage.Visitor.
func (f *Fields) String(fields uint64, name, text []byte, cut bool) {
	if isFile(name, text) {
		f.body.Images++
	} else {
		f.body.Text += textLength(text)
	}
	if fields == 0 || cut {
		return
	}
	if fields&(1<<factModel) != 0 {
		f.model = f.keep(text)
	}
	if fields>>facts == 0 {
		return
	}
	at := f.keep(text)
	for i := range f.values {
		if fields&(1<<(facts+i)) != 0 {
			f.values[i] = at
		}
	}
}

// Scalar implements usage.Visitor.
func (f *Fields) Scalar(fields uint64, text []byte) {
	if fields&(1<<factStream) != 0 {
		f.stream = string(text) == "true"
	}
	if v, ok := usage.Number(text); ok {
		if fields&(1<<factOutput) != 0 {
			f.body.Output = max(f.body.Output, v)
		}
		if fields&(1<<factAnswers) != 0 {
			f.body.Answers = max(f.body.Answers, v)
		}
	}
	if fields>>facts == 0 || string(text) == "null" {
		return
	}
	at := f.keep(text)
	for i := range f.values {
		if fields&(1<<(facts+i)) != 0 {
			f.values[i] = at
		}
	}
}

// maxKept bounds the bytes of all values: a client may repeat a field.
const maxKept = 64 << 10

// keep keeps a value.
func (f *Fields) keep(text []byte) span {
	if len(f.space) > maxKept {
		return span{}
	}
	from := len(f.space)
	if len(text) > 6*maxValue {
		text = text[:6*maxValue]
	}
	f.space = usage.Unescape(f.space, text)
	f.space = f.space[:min(len(f.space), from+maxValue)]
	return span{from, len(f.space), true}
}

// isFile reports whether a string is an image or a file: its bytes, or its address.
func isFile(name, text []byte) bool {
	if bytes.HasPrefix(text, []byte("data:")) {
		return true
	}
	switch string(name) {
	case "url", "image_url", "file_id", "file_uri", "fileUri", "uri":
		return len(text) > 0
	}
	if len(text) < blob {
		return false
	}
	for _, c := range text[:blob] {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && c != '+' && c != '/' && c != '=' && c != '-' && c != '_' && c != '\\' {
			return false
		}
	}
	return true
}

// textLength is the length of a string about as its text has it.
func textLength(text []byte) int64 {
	escapes := bytes.Count(text, []byte{'\\'})
	if escapes == 0 {
		return int64(len(text))
	}
	return int64(max(len(text)-escapes-3*bytes.Count(text, []byte(`\u`)), 0))
}
