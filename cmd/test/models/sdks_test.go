package models

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// names are the calls of testdata/sdks/calls.mjs.
var names = []string{
	"openai-chat", "openai-chat-stream", "openai-chat-silent", "openai-responses", "openai-responses-stream", "openai-embeddings",
	"anthropic", "anthropic-stream", "genai", "genai-stream", "genai-array", "bedrock", "bedrock-stream", "ollama", "ollama-stream",
	"cohere", "cohere-stream", "mistral", "mistral-stream", "ai-openai", "ai-openai-stream", "ai-responses-stream",
	"ai-anthropic-stream", "langchain", "langchain-stream",
}

// A request is one call of an SDK.
type request struct {
	Name  string `json:"name"`
	Base  string `json:"base"`
	Model string `json:"model"`
	Leave int    `json:"leave,omitempty"`
	Most  int    `json:"most,omitempty"`
}

// An outcome is what the user of the SDK has got.
type outcome struct {
	Name   string  `json:"name"`
	Model  string  `json:"model"`
	Text   *string `json:"text"`
	Usage  *int64  `json:"usage"`
	Error  string  `json:"error"`
	SDK    string  `json:"sdk"`
	Waits  bool    `json:"waits"`
	Pieces int     `json:"pieces"`
	Took   int     `json:"took"`
}

// node runs calls with the SDKs of npm, all at the same time, and gives the outcomes by model.
func node(t *testing.T, requests []request) map[string]outcome {
	t.Helper()
	var input, stderr bytes.Buffer
	for _, r := range requests {
		if err := json.NewEncoder(&input).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "run.mjs")
	command.Dir = filepath.Join("testdata", "sdks")
	command.Stdin, command.Stderr = &input, &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v (make deps installs the packages)\n%s", err, &stderr)
	}
	found := map[string]outcome{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var one outcome
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		found[one.Model] = one
	}
	for _, r := range requests {
		if _, ok := found[r.Model]; !ok {
			t.Errorf("no outcome of %s", r.Model)
		}
	}
	return found
}

// every has each call in some ways.
func every(base string, ways []string) []request {
	var all []request
	for _, name := range names {
		for _, way := range ways {
			all = append(all, request{Name: name, Base: base, Model: name + way})
		}
	}
	return all
}

// stated gives the tokens that the answer to a call states, in all; -1 if the answer states none.
func stated(name, model string) int64 {
	u := UsageOf(model)
	switch {
	case name == "openai-chat-silent":
		return -1
	case name == "openai-embeddings":
		return u.prompt()
	case strings.HasPrefix(name, "genai"):
		return u.total() - u.Written
	case strings.HasPrefix(name, "ollama"), strings.HasPrefix(name, "cohere"):
		return u.Input + u.Output
	}
	return u.total()
}

// complete checks that a call has ended well, with all text and the stated usage.
func complete(t *testing.T, name string, got outcome) {
	t.Helper()
	if got.Error != "" {
		t.Errorf("%s: %s", got.Model, got.Error)
		return
	}
	if way, _ := wayOf(got.Model); name != "openai-embeddings" && (got.Text == nil || *got.Text != way.text()) {
		t.Errorf("%s: the text is not complete", got.Model)
	}
	if want := stated(name, got.Model); (got.Usage == nil) != (want < 0) || got.Usage != nil && *got.Usage != want {
		t.Errorf("%s: the SDK reports %v tokens, and the service states %d", got.Model, value(got.Usage), want)
	}
}

func value(n *int64) any {
	if n == nil {
		return "no"
	}
	return *n
}

// TestSDKsReportTheUsage runs the SDKs against the service alone: the service answers as their APIs do.
func TestSDKsReportTheUsage(t *testing.T) {
	t.Parallel()
	_, server := Serve()
	defer server.Close()
	requests := every(server.URL, someWays())
	found := node(t, requests)
	for _, r := range requests {
		complete(t, r.Name, found[r.Model])
	}
}
