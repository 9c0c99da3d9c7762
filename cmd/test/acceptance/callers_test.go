package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const callersConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: monthly, match: {path: /monthly}, key: ["header:X-Caller"], limits: ["1/30d"]}
  - {name: payments, match: {path: /v1/payment_intents}, key: ["header:X-Caller"], limits: ["1/30d"]}
  - {name: chat, match: {path: /v1/chat/completions}, key: ["header:X-Caller"], limits: ["1/30d"], on_exceed: {style: openai}}
  - {name: flight, match: {path: /flight/*}, key: ["header:X-Caller"], in_flight: 1}
  - {name: objects, match: {path: /bucket/*}, key: ["header:X-Caller"], limits: ["1/30d"], on_exceed: {style: s3}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// callers are the client libraries of testdata/callers, in the order of the table, with what each did before: with Retry-After above
// 24.8 days, and a problem document without error.
func callers() [][2]string {
	return [][2]string{
		{"got", "3 requests at once"},
		{"axios-retry", "4 requests at once"},
		{"ky", "waits"},
		{"openai", "3 requests at once"},
		{"openai, at most once", "429 status code (no body)"},
		{"stripe", "takes the refusal for a success"},
		{"@aws-sdk/client-s3", "XML parse error"},
		{"@octokit/core", "HttpError: Unknown error"},
		{"got, in flight", "own backoff"},
		{"axios-retry, in flight", "4 requests within 25 ms, and fails"},
	}
}

// signal tells that something has happened, once or more often.
type signal struct {
	once sync.Once
	sent chan struct{}
}

func (s *signal) wait(ctx context.Context) {
	select {
	case <-s.sent:
	case <-ctx.Done():
	}
}

func (s *signal) send() { s.once.Do(func() { close(s.sent) }) }

// TestCallers runs client libraries against the proxy: one call takes the only unit of weeks, and the next one is refused. The table
// of docs/callers.md has what each does.
func TestCallers(t *testing.T) {
	t.Parallel()
	all, requests := callers(), make([]atomic.Int64, len(callers()))
	begun, refused := make([]signal, len(all)), make([]signal, len(all))
	for n := range all {
		begun[n].sent, refused[n].sent = make(chan struct{}), make(chan struct{})
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("X-Caller"))
		switch {
		case strings.HasPrefix(r.URL.Path, "/bucket/"):
			fmt.Fprint(w, "object")
			return
		case r.URL.Path == "/begun":
			begun[n].wait(r.Context())
		case r.URL.Path == "/flight/first":
			begun[n].send()
			refused[n].wait(r.Context())
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id": "1", "object": "payment_intent", "choices": []}`)
	}))
	defer service.Close()
	i := start(t, callersConfiguration, service.URL)
	arguments := []string{"run.mjs"}
	for n, c := range all {
		// Between a library and the proxy, the requests are counted, and get the key of the library.
		front := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				if r.In.URL.Path != "/begun" {
					requests[n].Add(1)
				}
				r.SetURL(&url.URL{Scheme: "http", Host: i.Proxy})
				r.Out.Header.Set("X-Caller", fmt.Sprint(n))
			},
			ModifyResponse: func(resp *http.Response) error {
				if resp.StatusCode == http.StatusTooManyRequests {
					refused[n].send()
				}
				return nil
			},
		})
		t.Cleanup(front.Close)
		arguments = append(arguments, c[0]+"="+front.URL)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, tool(t, "node", "nodejs"), arguments...)
	command.Dir = filepath.Join("testdata", "callers")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	type told struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Outcome string `json:"outcome"`
	}
	found := map[string]told{}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		var one told
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		found[one.Name] = one
	}
	rows := []string{"| library | a refused call, before | now | requests |", "|---|---|---|---|"}
	seconds := regexp.MustCompile(`\d{4,} s`)
	for n, c := range all {
		one := found[c[0]]
		name, note, _ := strings.Cut(one.Name, ",")
		if note != "" {
			note = "," + note
		}
		rows = append(rows, fmt.Sprintf("| %s %s%s | %s | %s | %d |", name, one.Version, note, c[1], seconds.ReplaceAllString(one.Outcome, "N s"), requests[n].Load()-1))
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "callers.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(rows, "\n"); !strings.Contains(string(page), "\n"+table+"\n") {
		t.Errorf("docs/callers.md lacks the table\n%s", table)
	}
}
