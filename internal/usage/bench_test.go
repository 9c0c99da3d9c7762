package usage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/usage"
)

// benchFields are those of one API, with the text of its events.
func benchProgram(b *testing.B) *usage.Program {
	b.Helper()
	p, err := usage.Compile([]usage.Field{
		{Paths: []string{"usage.prompt_tokens", "usage.input_tokens"}},
		{Paths: []string{"usage.completion_tokens", "usage.output_tokens"}},
		{Paths: []string{"usage.total_tokens"}},
		{Kind: usage.Text, Paths: []string{"model"}},
		{Kind: usage.Length, Paths: []string{"choices.[].delta.content", "choices.[].message.content"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// benchBodies are a JSON answer of 1 MiB with long text, one with embeddings, and a stream of 1,000 events.
func benchBodies() map[string][]byte {
	end := `,"model":"m","usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}}`
	var stream bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&stream, `data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","service_tier":`+
			`"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}],`+
			`"usage":null,"obfuscation":"0123456"}`+"\n\n", i)
	}
	stream.WriteString("data: {\"choices\":[]" + end + "\n\ndata: [DONE]\n\n")
	return map[string][]byte{
		"text":       []byte(`{"choices":[{"message":{"content":"` + strings.Repeat(`A sentence of an answer, with \"quotes\".\n`, 1<<20/43) + `"}}]` + end),
		"embeddings": []byte(`{"data":[{"embedding":[` + strings.Repeat("-0.012345678,", 1<<20/13) + `0]}]` + end),
		"stream":     stream.Bytes(),
	}
}

// BenchmarkScan reads bodies in pieces of 32 KiB.
func BenchmarkScan(b *testing.B) {
	p := benchProgram(b)
	for name, body := range benchBodies() {
		format := usage.JSON
		if name == "stream" {
			format = usage.Events
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var s usage.Scanner
			for b.Loop() {
				s.Begin(p, format)
				for i := 0; i < len(body); i += 32 << 10 {
					s.Write(body[i:min(i+32<<10, len(body))])
				}
			}
		})
	}
}

// BenchmarkEncodingJSON reads the same bodies with encoding/json, whole or by event.
func BenchmarkEncodingJSON(b *testing.B) {
	type answer struct {
		Usage struct {
			In  int64 `json:"prompt_tokens"`
			Out int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	for name, body := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				events := [][]byte{body}
				if name == "stream" {
					events = bytes.Split(body, []byte("\n\n"))
				}
				for _, event := range events {
					var a answer
					_ = json.Unmarshal(bytes.TrimPrefix(event, []byte("data: ")), &a)
				}
			}
		})
	}
}
