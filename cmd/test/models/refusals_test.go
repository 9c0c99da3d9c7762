package models

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// streams are the calls of the table of docs/callers.md.
var streams = []string{
	"openai-chat-stream", "openai-responses-stream", "anthropic-stream", "genai-stream", "bedrock-stream", "ollama-stream", "cohere-stream",
	"mistral-stream", "ai-openai-stream", "ai-anthropic-stream", "langchain-stream",
}

// spend uses up the units of a model. The answer costs more than the limit, so the rest is a debt.
func spend(t *testing.T, base, model string) {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "messages": []}`, model)
	resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", model, resp.Status, err)
	}
}

const refusing = `rules:
  - {name: tokens, key: [model], limits: ["200/1h"], settle: auto, on_spent: stop}
`

// each runs a call of every SDK with models of one end.
func each(t *testing.T, base, end string, before func(model string)) map[string]outcome {
	t.Helper()
	var requests []request
	for _, name := range streams {
		model := name + ".plain.65536." + end
		before(model)
		requests = append(requests, request{Name: name, Base: base, Model: model, Most: most})
	}
	found := map[string]outcome{}
	for _, one := range node(t, requests) {
		found[one.Name] = one
	}
	return found
}

// most is the time after which a call that waits is given up, in ms. It is above the backoff of the SDKs that repeat a refusal at once.
const most = 15_000

// told is what a user sees of an end, with N in place of times.
func told(one outcome) string {
	switch {
	case one.Waits:
		return "waits"
	case one.Error == "":
		return "no error"
	}
	return regexp.MustCompile(`in \d+ s`).ReplaceAllString(strings.TrimSuffix(one.Error, "."), "in N s")
}

// TestRefusalsAndStops makes the table of docs/callers.md: what a user of each SDK sees when the units of an hour are used up before a
// call, and in the middle of a stream. The service's stream is then cut off too.
func TestRefusalsAndStops(t *testing.T) {
	t.Parallel()
	service, server := Serve()
	defer server.Close()
	p := start(t, refusing, server.URL, "fast")
	refused := each(t, p.Base, "refused", func(model string) { spend(t, p.Base, model) })
	stopped := each(t, p.Base, string(Long), func(string) {})
	rows := []string{"| SDK | a refused call | a stopped stream |", "|---|---|---|"}
	for _, name := range streams {
		one := stopped[name]
		rows = append(rows, fmt.Sprintf("| %s, %#q | %s | %s |", one.SDK, name, told(refused[name]), told(one)))
		if calls := service.Calls(refused[name].Model); calls != 1 {
			t.Errorf("%s: %d requests have reached the service, and not only the first one", name, calls)
		}
		if one.Pieces == 0 || one.Pieces >= LongEvents {
			t.Errorf("%s: the stream has ended after %d of %d pieces", name, one.Pieces, LongEvents)
		}
		left(t, service, one.Model)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "callers.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(rows, "\n"); !strings.Contains(string(page), "\n"+table+"\n") {
		t.Errorf("docs/callers.md lacks the table\n%s", table)
	}
}

// left waits until the service has seen that the proxy has left its stream.
func left(t *testing.T, service *Service, model string) {
	t.Helper()
	if !comes(func() bool { _, ok := service.Left(model); return ok }) {
		t.Errorf("%s: the service still streams", model)
	}
}

// TestAborts: an aborted stream costs what was streamed, and never more than the whole answer.
func TestAborts(t *testing.T) {
	t.Parallel()
	service, server := Serve()
	defer server.Close()
	p := start(t, counting, server.URL, "fast")
	var requests []request
	for _, name := range []string{"openai-chat-stream", "anthropic-stream", "bedrock-stream", "langchain-stream"} {
		requests = append(requests, request{Name: name, Base: p.Base, Model: name + ".gzip.37.long", Leave: 20})
	}
	found := node(t, requests)
	for _, r := range requests {
		if one := found[r.Model]; one.Pieces < r.Leave || one.Pieces >= LongEvents {
			t.Errorf("%s: %d pieces, error %q", r.Model, one.Pieces, one.Error)
		}
		left(t, service, r.Model)
		least := int64(1)
		if r.Name == "anthropic-stream" {
			least = UsageOf(r.Model).prompt() // Its first event states the input.
		}
		used := int64(0) // Until the answer is settled, the counter has the reservation.
		if !comes(func() bool { used = p.used(t, r.Model); return used >= least && used < stated(r.Name, r.Model) }) {
			t.Errorf("%s: %d units after %d pieces, at least %d, and %d when complete",
				r.Model, used, found[r.Model].Pieces, least, stated(r.Name, r.Model))
		}
	}
}
