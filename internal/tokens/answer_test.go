package tokens_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/tokens"
)

const (
	sse    = "text/event-stream; charset=utf-8"
	object = "application/json"
)

// answers are bodies as the APIs send them, with the tokens that they state.
var answers = []struct {
	name      string
	api       tokens.API
	path, typ string
	body      string
	want      tokens.Counts
	model     string
	ended     bool
}{
	{
		"chat", tokens.OpenAI, "/v1/chat/completions", object,
		`{"model":"gpt-4o","choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":9}"}}],"usage":{"prompt_tokens":100,"completion_tokens":7,` +
			`"total_tokens":107,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":10}}}`,
		tokens.Counts{Input: 30, Cached: 60, Written: 10, Output: 7, Total: 107},
		"gpt-4o", true,
	},
	{
		"chat of a model that leaves its thoughts out", tokens.OpenAI, "/v1beta/openai/chat/completions", object,
		`{"usage":{"prompt_tokens":7,"completion_tokens":0,"total_tokens":8}}`,
		tokens.Counts{Input: 7, Output: 1, Total: 8},
		"", true,
	},
	{
		"chat stream", tokens.OpenAI, "/v1/chat/completions", sse,
		"data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":null}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}\n\ndata: [DONE]\n\n",
		tokens.Counts{Input: 9, Output: 1, Total: 10},
		"m", true,
	},
	{
		"responses stream", tokens.OpenAI, "/v1/responses", sse,
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"o\",\"usage\":null}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":6," +
			"\"total_tokens\":11,\"input_tokens_details\":{\"cached_tokens\":4}}}}\n\n",
		tokens.Counts{Input: 1, Cached: 4, Output: 6, Total: 11},
		"o", true,
	},
	{
		"embeddings", tokens.OpenAI, "/v1/embeddings", object,
		`{"data":[{"embedding":[0.1,-2e-3]}],"model":"e","usage":{"prompt_tokens":12,"total_tokens":12}}`,
		tokens.Counts{Input: 12, Total: 12},
		"e", true,
	},
	{
		"messages", tokens.Anthropic, "/v1/messages", object,
		`{"type":"message","model":"claude","usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":5,"output_tokens":8}}`,
		tokens.Counts{Input: 3, Cached: 40, Written: 5, Output: 8},
		"claude", true,
	},
	{
		"messages stream", tokens.Anthropic, "/v1/messages", sse,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
			"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15,\"input_tokens\":null}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		tokens.Counts{Input: 25, Output: 15},
		"claude", true,
	},
	{
		"messages stream with all usage at its end", tokens.Anthropic, "/v1/messages", sse,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\r\n\r\n" +
			"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15,\"input_tokens\":9}}\r\n\r\n",
		tokens.Counts{Input: 9, Output: 15},
		"", false,
	},
	{
		"generateContent", tokens.Gemini, "/v1beta/models/gemini-2:generateContent", object,
		`{"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":30,` +
			`"toolUsePromptTokenCount":5,"totalTokenCount":47}}`,
		tokens.Counts{Input: 11, Cached: 4, Output: 32, Total: 47},
		"gemini-2", true,
	},
	{
		"streamGenerateContent as an array", tokens.Gemini, "/v1beta/models/gemini-2:streamGenerateContent", object,
		`[{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}},` + "\r\n" +
			`{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"totalTokenCount":13},"modelVersion":"gemini-2-x"}]`,
		tokens.Counts{Input: 10, Output: 3, Total: 13},
		"gemini-2-x", true,
	},
	{
		"converse", tokens.Bedrock, "/model/anthropic.claude:0/converse", object,
		`{"usage":{"inputTokens":30,"outputTokens":628,"totalTokens":658,"cacheReadInputTokens":7}}`,
		tokens.Counts{Input: 30, Cached: 7, Output: 628, Total: 658},
		"anthropic.claude:0", true,
	},
	{
		"chat of Ollama", tokens.Ollama, "/api/chat", "application/x-ndjson",
		`{"model":"llama","message":{"content":"a"},"done":false}` + "\n" +
			`{"model":"llama","done":true,"prompt_eval_count":26,"eval_count":298}` + "\n",
		tokens.Counts{Input: 26, Output: 298},
		"llama", true,
	},
	{
		"chat of Cohere", tokens.Cohere, "/v2/chat", sse,
		"event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"usage\":{\"billed_units\":{\"input_tokens\":3,\"output_tokens\":4}," +
			"\"tokens\":{\"input_tokens\":70,\"output_tokens\":4}}}}\n\n",
		tokens.Counts{Input: 3, Output: 4},
		"", true,
	},
	{
		"rerank of Cohere", tokens.Cohere, "/v2/rerank", object,
		`{"results":[],"meta":{"billed_units":{"search_units":1}}}`,
		tokens.Counts{Input: 1},
		"", true,
	},
}

// codings compress a body as services do.
var codings = map[string]func(t *testing.T, body string) []byte{
	"":         plainBody,
	"identity": plainBody,
	"gzip": func(t *testing.T, body string) []byte {
		t.Helper()
		var b bytes.Buffer
		return compressed(t, gzip.NewWriter(&b), &b, body)
	},
	"deflate": func(t *testing.T, body string) []byte {
		t.Helper()
		var b bytes.Buffer
		return compressed(t, zlib.NewWriter(&b), &b, body)
	},
}

func plainBody(_ *testing.T, body string) []byte { return []byte(body) }

func compressed(t *testing.T, w io.WriteCloser, b *bytes.Buffer, body string) []byte {
	t.Helper()
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read reads an answer in pieces of a size.
func read(a *tokens.Answer, body []byte, size int) {
	for len(body) > 0 {
		n := min(size, len(body))
		a.Write(body[:n])
		body = body[n:]
	}
}

// TestAnswers reads the answers of all APIs, with their preset and with auto, in every coding and in pieces of several sizes.
func TestAnswers(t *testing.T) {
	for _, c := range answers {
		for _, api := range []tokens.API{c.api, tokens.Auto} {
			s := &tokens.Settle{API: api}
			r, err := tokens.NewReader([]*tokens.Settle{s}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for coding, encode := range codings {
				for _, size := range []int{1, 37, 65536} {
					var a tokens.Answer
					a.Begin(r, "POST", c.path, 200, c.typ, coding)
					read(&a, encode(t, c.body), size)
					cause := a.Close(true)
					got, final := a.Counts(s)
					if cause != tokens.Stated || !final || got != c.want || a.Model() != c.model || a.Ended() != c.ended {
						t.Errorf("%s, %s, coding %q, pieces of %d: %s, %v, %+v of %q, ended %v; want %+v of %q, ended %v",
							c.name, api, coding, size, cause, final, got, a.Model(), a.Ended(), c.want, c.model, c.ended)
					}
				}
			}
		}
	}
}

// TestCauses checks what answers without a final statement give.
func TestCauses(t *testing.T) {
	usage := `{"usage":{"prompt_tokens":5,"completion_tokens":6}}`
	for name, c := range map[string]struct {
		method, path      string
		status            int
		typ, coding, body string
		cut               bool
		want              tokens.Cause
	}{
		"stated":                       {"POST", "/v1/chat/completions", 200, object, "", usage, false, tokens.Stated},
		"a list of models":             {"GET", "/v1/models", 200, object, "", `{"data":[]}`, false, tokens.None},
		"a GET that states usage":      {"GET", "/v1/responses", 200, object, "", usage, false, tokens.None},
		"another path":                 {"POST", "/v1/files", 200, object, "", `{}`, false, tokens.None},
		"another path, with usage":     {"POST", "/v1/new", 200, object, "", usage, false, tokens.Stated},
		"no usage":                     {"POST", "/v1/chat/completions", 200, object, "", `{}`, false, tokens.NoUsage},
		"no usage in a stream":         {"POST", "/v1/chat/completions", 200, sse, "", "data: {\"usage\":null}\n\ndata: [DONE]\n\n", true, tokens.NoUsage},
		"an error":                     {"POST", "/v1/chat/completions", 500, object, "", `{"error":{}}`, false, tokens.None},
		"an error with usage":          {"POST", "/v1/chat/completions", 500, object, "", usage, false, tokens.Stated},
		"an unknown coding":            {"POST", "/v1/chat/completions", 200, object, "br", usage, false, tokens.Encoding},
		"no gzip":                      {"POST", "/v1/chat/completions", 200, object, "gzip", usage, false, tokens.Broken},
		"no JSON":                      {"POST", "/v1/chat/completions", 200, object, "", "<html>", false, tokens.Broken},
		"half a document":              {"POST", "/v1/chat/completions", 200, object, "", usage[:20], false, tokens.Broken},
		"an image":                     {"POST", "/v1/chat/completions", 200, "image/png", "", usage, false, tokens.NoUsage},
		"cut before usage":             {"POST", "/v1/chat/completions", 200, sse, "", "data: {\"usage\":null}\n\n", true, tokens.Aborted},
		"cut behind [DONE]":            {"POST", "/v1/chat/completions", 200, sse, "", "data: " + usage + "\n\ndata: [DONE]", true, tokens.Stated},
		"cut between usage and [DONE]": {"POST", "/v1/chat/completions", 200, sse, "", "data: " + usage + "\n\n", true, tokens.Aborted},
	} {
		s := &tokens.Settle{API: tokens.OpenAI}
		r, err := tokens.NewReader([]*tokens.Settle{s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var a tokens.Answer
		a.Begin(r, c.method, c.path, c.status, c.typ, c.coding)
		read(&a, []byte(c.body), 7)
		a.Close(!c.cut)
		if got := a.Cause(s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestStreamed counts the text that passes.
func TestStreamed(t *testing.T) {
	s := &tokens.Settle{API: tokens.Auto}
	r, err := tokens.NewReader([]*tokens.Settle{s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var a tokens.Answer
	a.Begin(r, "POST", "/v1/chat/completions", 200, sse, "")
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\n"
	a.Write([]byte(strings.Repeat(event, 10) + "data: {"))
	if got, at := a.Streamed(), a.Boundary(); got != 10 || at != 10*len(event) {
		t.Errorf("10 events of 4 bytes: %d tokens and a boundary at %d, want 10 and %d", got, at, 10*len(event))
	}
}
