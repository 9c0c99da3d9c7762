package tokens_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/tokens"
)

func reader(tb testing.TB, fields []string, settles ...*tokens.Settle) *tokens.Reader {
	tb.Helper()
	r, err := tokens.NewReader(settles, fields)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestRequests reads the facts of requests as SDKs write them.
func TestRequests(t *testing.T) {
	blob := strings.Repeat("iVBORw0KGgo", 40)
	for name, c := range map[string]struct {
		path, body string
		want       headgate.Body
		model      string
		stream     bool
	}{
		"chat": {
			"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}],"model":"gpt-4o","max_tokens":100,"n":2,"stream":true}`,
			headgate.Body{Text: 15, Output: 100, Answers: 2},
			"gpt-4o", true,
		},
		"both bounds":  {"/v1/chat/completions", `{"model":"o","max_completion_tokens":50,"max_tokens":20}`, headgate.Body{Text: 1, Output: 50}, "o", false},
		"completions":  {"/v1/completions", `{"prompt":["ab","cd"],"n":2,"best_of":5}`, headgate.Body{Text: 4, Answers: 5}, "", false},
		"responses":    {"/v1/responses", `{"input":"hello","max_output_tokens":7}`, headgate.Body{Text: 5, Output: 7}, "", false},
		"an image":     {"/v1/messages", `{"messages":[{"content":[{"source":{"data":"` + blob + `"}}]}]}`, headgate.Body{Images: 1}, "", false},
		"a data URL":   {"/v1/chat/completions", `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AA"}}]}]}`, headgate.Body{Images: 1}, "", false},
		"an address":   {"/v1/chat/completions", `{"messages":[{"content":[{"image_url":{"url":"https://a/b.png"}}]}]}`, headgate.Body{Images: 1}, "", false},
		"long text":    {"/v1/chat/completions", `{"input":"` + strings.Repeat("word ", 100) + `"}`, headgate.Body{Text: 500}, "", false},
		"other script": {"/v1/chat/completions", `{"input":"` + strings.Repeat("語", 300) + `"}`, headgate.Body{Text: 900}, "", false},
		"escapes":      {"/v1/chat/completions", `{"input":"a\nb\"c\u00e9"}`, headgate.Body{Text: 7}, "", false},
		"Gemini": {
			"/v1beta/models/gemini-2:generateContent", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":9,"candidateCount":3}}`,
			headgate.Body{Text: 2, Output: 9, Answers: 3},
			"gemini-2", false,
		},
		"Converse": {
			"/model/anthropic.claude:0/converse", `{"messages":[{"content":[{"text":"Hi"}]}],"inferenceConfig":{"maxTokens":8}}`,
			headgate.Body{Text: 2, Output: 8},
			"anthropic.claude:0", false,
		},
		"an ARN":          {"/model/arn:aws:bedrock:eu:1:inference-profile/eu.claude/invoke", `{}`, headgate.Body{}, "arn:aws:bedrock:eu:1:inference-profile/eu.claude", false},
		"a deployment":    {"/openai/deployments/mine/chat/completions", `{}`, headgate.Body{}, "mine", false},
		"Ollama":          {"/api/chat", `{"model":"llama","options":{"num_predict":-1}}`, headgate.Body{Text: 5}, "llama", false},
		"a bound of text": {"/v1/responses", `{"max_output_tokens":"7"}`, headgate.Body{Text: 1}, "", false},
		"in the text":     {"/v1/responses", `{"input":"\"max_tokens\":5","tools":[{"max_tokens":5}]}`, headgate.Body{Text: 14}, "", false},
		"no JSON":         {"/v1/responses", `]}{"model"`, headgate.Body{Text: 5}, "", false},
		"empty":           {"/v1/responses", ``, headgate.Body{}, "", false},
	} {
		r := reader(t, []string{"model"})
		var f tokens.Fields
		var b headgate.Body
		r.Request(&b, &f, c.path, []byte(c.body), false)
		c.want.Fields = &f
		if b != c.want || f.Model() != c.model || f.Stream() != c.stream {
			t.Errorf("%s: %+v of model %q, stream %v, want %+v of %q, %v", name, b, f.Model(), f.Stream(), c.want, c.model, c.stream)
		}
		if got, ok := b.Fields.Lookup("model"); got != c.model || ok != (c.model != "") {
			t.Errorf("%s: the field model is %q, %v", name, got, ok)
		}
	}
}

// TestFields looks up values of the body, with memory that is used again.
func TestFields(t *testing.T) {
	r := reader(t, []string{"method", "params.name", "id", "on", "tags.[]", "none"})
	var f tokens.Fields
	var b headgate.Body
	for range 2 {
		r.Request(&b, &f, "/mcp", []byte(`{"method":"x","method":"tools\/call","params":{"name":"search \u00e9","none":1},"id":1.50,"on":true,"tags":["a","b"],"none":null}`), false)
		for path, want := range map[string]string{"method": "tools/call", "params.name": "search é", "id": "1.50", "on": "true", "tags.[]": "b"} {
			if got, ok := f.Lookup(path); got != want || !ok {
				t.Errorf("%s is %q, %v, want %q", path, got, ok, want)
			}
		}
		for _, path := range []string{"none", "name", "params", "model"} {
			if got, ok := f.Lookup(path); ok {
				t.Errorf("%s is %q, want none", path, got)
			}
		}
	}
	r.Request(&b, &f, "/mcp", []byte(`{"method":"tools/ca`), true)
	if got, ok := f.Lookup("method"); ok || !b.Part {
		t.Errorf("a value that is cut is %q, want none", got)
	}
	long := strings.Repeat("x", 5000)
	r.Request(&b, &f, "/mcp", []byte(`{"method":"`+long+`"}`), false)
	if got, _ := f.Lookup("method"); got != long[:1024] {
		t.Errorf("a long value has %d bytes, want 1024", len(got))
	}
	r.Request(&b, &f, "/mcp", []byte(`{`+strings.Repeat(`"method":"`+long+`",`, 1000)+`"id":1}`), false)
	if got, ok := f.Lookup("method"); ok && len(got) > 1024 {
		t.Errorf("a repeated value has %d bytes", len(got))
	}
}

// TestRequestAllocates checks the cost of reading a body: one string for all values.
func TestRequestAllocates(t *testing.T) {
	r := reader(t, []string{"model", "user"})
	var f tokens.Fields
	var b headgate.Body
	body := []byte(`{"model":"gpt","user":"u","messages":[{"content":"` + strings.Repeat("text ", 1000) + `"}]}`)
	if n := testing.AllocsPerRun(50, func() { r.Request(&b, &f, "/v1/chat/completions", body, false) }); n > 1 {
		t.Errorf("%v allocations, want at most 1", n)
	}
}

// TestEstimates checks the first estimate of a rule, what answers teach, and the cut.
func TestEstimates(t *testing.T) {
	s := &tokens.Settle{API: tokens.OpenAI}
	e := &tokens.Estimate{}
	var l tokens.Learned
	b := &headgate.Body{Text: 400}
	for name, c := range map[string]struct {
		b    *headgate.Body
		e    tokens.Estimate
		most int64
		want int64
	}{
		"no body":    {nil, tokens.Estimate{}, 1000, 500},
		"text":       {b, tokens.Estimate{}, 1000, 600},
		"own start":  {b, tokens.Estimate{BytesPerToken: 2 * tokens.One, Output: 10}, 1000, 210},
		"bounded":    {&headgate.Body{Text: 400, Output: 50, Answers: 3}, tokens.Estimate{}, 1000, 250},
		"images":     {&headgate.Body{Images: 2, Output: 1}, tokens.Estimate{}, 9000, 2001},
		"cut":        {&headgate.Body{Text: 400, Output: 1 << 52, Answers: 1 << 40}, tokens.Estimate{}, 100, 100},
		"at least 1": {&headgate.Body{Output: 1}, tokens.Estimate{}, 0, 1},
	} {
		if got := l.Cost(s, &c.e, c.b, "m", c.most); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for range 200 {
		l.Add(b, &tokens.Counts{Input: 150, Cached: 50, Output: 30})
	}
	if got := l.Cost(s, e, b, "m", 10_000); got != 230 {
		t.Errorf("after answers of 200 and 30 tokens: %d, want 230", got)
	}
	if got := l.Cost(s, &tokens.Estimate{Fixed: true}, b, "m", 10_000); got != 600 {
		t.Errorf("fixed: %d, want 600", got)
	}
	// A single strange answer moves the estimates by a sixteenth.
	l.Add(b, &tokens.Counts{Input: 200, Output: 30 + 1600})
	if got := l.Cost(s, e, b, "m", 10_000); got != 330 {
		t.Errorf("after one answer of 1630 tokens: %d, want 330", got)
	}
	for _, strange := range []tokens.Counts{{}, {Input: headgate.MaxUnits}, {Output: headgate.MaxUnits}, {Input: 1}} {
		var l tokens.Learned
		l.Add(&headgate.Body{Text: headgate.MaxUnits}, &strange)
		l.Add(b, &strange)
		if got := l.Cost(s, e, b, "m", 1000); got < 1 || got > 1000 {
			t.Errorf("after %+v: %d, want 1 to 1000", strange, got)
		}
	}
}

// TestErrors checks that error events are JSON with the message, in the form of each API, whatever the message contains.
func TestErrors(t *testing.T) {
	message := "limit of \"team\"\nspent: \x00 <b> \u2028 \xff é"
	want := strings.ToValidUTF8(message, "\ufffd")
	for _, api := range append(tokens.APIs(), tokens.NoAPI) {
		event := api.ErrorEvent([]byte("before"), message)
		if api == tokens.Bedrock {
			continue // TestException
		}
		text, _ := bytes.CutPrefix(event, []byte("before"))
		if i := bytes.Index(text, []byte("data: ")); i >= 0 {
			text = text[i+6:]
			if !bytes.HasSuffix(text, []byte("\n\n")) {
				t.Errorf("%s: the event has no end: %q", api, event)
			}
		}
		if bytes.Count(bytes.TrimSpace(text), []byte("\n")) > 0 {
			t.Errorf("%s: the data has several lines: %q", api, text)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil || !strings.Contains(fmt.Sprint(v), want) {
			t.Errorf("%s: %v, and no message in %q", api, err, text)
		}
	}
}
