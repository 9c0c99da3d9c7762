package tokens_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate/headgate/internal/tokens"
)

// frame writes a frame of an AWS event stream with a header.
func frame(payload string) string {
	headers := "\x0b:event-type\x07\x00\x05chunk"
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func wrapped(document string) string {
	return frame(`{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(document)) + `","p":"abcdef"}`)
}

// headers are headers of an answer.
type headers map[string]string

// Lookup implements headgate.Values.
func (h headers) Lookup(name string) (string, bool) { v, ok := h[name]; return v, ok }

// TestBedrock reads event streams, and the headers of InvokeModel.
func TestBedrock(t *testing.T) {
	for name, c := range map[string]struct {
		path, typ, body string
		headers         headers
		want            tokens.Counts
		ended           bool
	}{
		"ConverseStream": {
			"/model/m/converse-stream", "application/vnd.amazon.eventstream",
			frame(`{"delta":{"text":"Hi"}}`) + frame(`{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":12,"cacheReadInputTokens":5}}`),
			nil,
			tokens.Counts{Input: 3, Cached: 5, Output: 4, Total: 12},
			true,
		},
		"InvokeModelWithResponseStream": {
			"/model/m/invoke-with-response-stream", "application/vnd.amazon.eventstream",
			wrapped(`{"type":"message_start","message":{"model":"x","usage":{"input_tokens":3,"output_tokens":1}}}`) +
				wrapped(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":40}}`),
			nil,
			tokens.Counts{Input: 3, Output: 40},
			true,
		},
		"InvokeModel": {
			"/model/m/invoke", object, `{"outputs":[]}`,
			headers{"X-Amzn-Bedrock-Input-Token-Count": "6", "X-Amzn-Bedrock-Output-Token-Count": "7"},
			tokens.Counts{Input: 6, Output: 7},
			true,
		},
	} {
		s := &tokens.Settle{API: tokens.Auto}
		r := reader(t, nil, s)
		for _, size := range []int{1, 37, 65536} {
			var a tokens.Answer
			a.Begin(r, "POST", c.path, 200, c.typ, "")
			if c.headers != nil {
				a.Header(c.headers)
			}
			read(&a, []byte(c.body), size)
			ended := a.Ended()
			cause := a.Close(true)
			if got, final := a.Counts(s); cause != tokens.Stated || !final || got != c.want || ended != c.ended {
				t.Errorf("%s in pieces of %d: %s, %+v, ended %v, want %+v, ended %v", name, size, cause, got, ended, c.want, c.ended)
			}
		}
	}
}

// TestException reads the frame of an exception as clients do.
func TestException(t *testing.T) {
	b := tokens.Bedrock.ErrorEvent([]byte("before"), `no "tokens"`)[len("before"):]
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if int(total) != len(b) || binary.BigEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[:8]) {
		t.Fatalf("the prelude is wrong: % x", b)
	}
	if end := len(b) - 4; binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		t.Errorf("the checksum is wrong: % x", b)
	}
	got := map[string]string{}
	for h := b[12 : 12+headers]; len(h) > 0; {
		name := string(h[1 : 1+h[0]])
		h = h[1+len(name):]
		n := binary.BigEndian.Uint16(h[1:])
		got[name] = string(h[3 : 3+n])
		h = h[3+n:]
	}
	if got[":message-type"] != "exception" || got[":exception-type"] != "throttlingException" || got[":content-type"] != "application/json" {
		t.Errorf("headers %v", got)
	}
	if payload := string(b[12+headers : len(b)-4]); payload != `{"message":"no \"tokens\""}` {
		t.Errorf("payload %s", payload)
	}
}

// TestOwnFields settles by fields and headers of a configuration, beside a preset, in one scan.
func TestOwnFields(t *testing.T) {
	field := func(w tokens.Weight, paths ...string) tokens.Field {
		return tokens.Field{Name: "n", Paths: paths, Weight: w}
	}
	preset := &tokens.Settle{API: tokens.OpenAI}
	dollars := &tokens.Settle{JSON: []tokens.Field{field(1_000_000*tokens.One, "usage.cost")}}
	highest := &tokens.Settle{JSON: []tokens.Field{field(tokens.One, "n"), field(tokens.One/3, "usage.prompt_tokens")}}
	last := &tokens.Settle{Merge: tokens.Last, JSON: highest.JSON[:1]}
	sum := &tokens.Settle{Merge: tokens.Sum, JSON: highest.JSON[:1]}
	header := &tokens.Settle{Headers: []tokens.Field{{Name: "X-In", Weight: tokens.One}, {Name: "X-Out", Weight: 5 * tokens.One}}}
	absent := &tokens.Settle{JSON: []tokens.Field{field(tokens.One, "absent")}}
	foreign := &tokens.Settle{JSON: highest.JSON}
	r := reader(t, nil, preset, dollars, highest, last, sum, header, absent)
	var a tokens.Answer
	a.Begin(r, "POST", "/v1/chat/completions", 200, sse, "")
	a.Header(headers{"X-In": "9.5"})
	a.Write([]byte("data: {\"n\":5,\"usage\":{\"prompt_tokens\":2,\"cost\":0.00014}}\n\ndata: {\"n\":9}\n\ndata: {\"n\":7}\n\n"))
	a.Header(headers{"X-Out": "2", "X-In": "none"})
	a.Close(true)
	for name, c := range map[string]struct {
		settle *tokens.Settle
		want   int64
		cause  tokens.Cause
	}{
		"preset":  {preset, 2, tokens.Stated},
		"dollars": {dollars, 140, tokens.Stated},
		"max":     {highest, 10, tokens.Stated},
		"last":    {last, 7, tokens.Stated},
		"sum":     {sum, 21, tokens.Stated},
		"header":  {header, 20, tokens.Stated}, // 9.5 + 5 × 2 is rounded up,
		"absent":  {absent, 0, tokens.NoUsage},
		"foreign": {foreign, 0, tokens.NoUsage},
	} {
		counts, _ := a.Counts(c.settle)
		if got := c.settle.Cost(&counts, ""); got != c.want || a.Cause(c.settle) != c.cause {
			t.Errorf("%s: %d, %s, want %d, %s", name, got, a.Cause(c.settle), c.want, c.cause)
		}
	}
}

// TestAnswerSize checks that an answer has its memory, and needs no other for its events.
func TestAnswerSize(t *testing.T) {
	if size := unsafe.Sizeof(tokens.Answer{}); size > tokens.AnswerBytes {
		t.Errorf("an Answer has %d bytes, want at most %d", size, tokens.AnswerBytes)
	}
	s := &tokens.Settle{API: tokens.Auto}
	r := reader(t, nil, s)
	var a tokens.Answer
	body := []byte(strings.Repeat("data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\\u0062\"}}],\"usage\":{\"prompt_tokens\":5}}\n\n", 100))
	if n := testing.AllocsPerRun(20, func() {
		a.Begin(r, "POST", "/v1/chat/completions", 200, sse, "")
		a.Write(body)
		a.Close(true)
		_, _ = a.Counts(s)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
