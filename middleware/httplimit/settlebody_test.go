package httplimit_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// tokenGuard counts the tokens that answers of an API state: limit an hour.
func tokenGuard(t *testing.T, limit int64, change ...func(*guard.Rule)) *guard.Guard {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	r := guard.Rule{
		Rule:       rule.Rule{Name: "tokens", Match: rule.Match{Path: "/v1/*"}, Key: []rule.Part{all}},
		Policies:   []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: limit, Per: time.Hour}}},
		SettleBody: &tokens.Settle{API: tokens.OpenAI},
		Estimate:   &tokens.Estimate{BytesPerToken: 4 * tokens.One, Output: 500, Image: 1000, Fixed: true},
		MaxBody:    1000,
	}
	for _, c := range change {
		c(&r)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{r}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// posted sends a request through the middleware to a handler.
func posted(t *testing.T, g *guard.Guard, path, body string, h http.HandlerFunc, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	httplimit.New(g, httplimit.Options{})(h).ServeHTTP(w, r)
	return w
}

const (
	wordChunk = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}],\"usage\":null}\n\n"
	usageDoc  = `{"id":"c","usage":{"prompt_tokens":7,"completion_tokens":100,"total_tokens":107}}`
)

// TestSettleByBody: the tokens of an answer are counted, in one piece or many, plain or with gzip. The handler gets the body of the request
// whole, and an Accept-Encoding that can be read.
func TestSettleByBody(t *testing.T) {
	g := tokenGuard(t, 1<<30)
	n := uint64(0)
	for _, size := range []int{2, 999, 1000, 1001, 5000} {
		for _, piece := range []int{1, 37, 64 << 10} {
			for _, zipped := range []bool{false, true} {
				body := strings.Repeat("x", size)
				w := posted(t, g, "/v1/x/completions", body, func(w http.ResponseWriter, r *http.Request) {
					got, err := io.ReadAll(r.Body)
					if string(got) != body || err != nil || r.Header.Get("Accept-Encoding") != "gzip" {
						t.Errorf("the handler got %d bytes of %d, %v, and Accept-Encoding %q", len(got), size, err, r.Header.Get("Accept-Encoding"))
					}
					w.Header().Set("Content-Type", "application/json")
					answer := []byte(usageDoc)
					if zipped {
						var b bytes.Buffer
						z := gzip.NewWriter(&b)
						_, _ = z.Write(answer)
						_ = z.Close()
						answer = b.Bytes()
						w.Header().Set("Content-Encoding", "gzip")
					}
					for len(answer) > 0 {
						k := min(piece, len(answer))
						_, _ = w.Write(answer[:k])
						answer = answer[k:]
					}
				}, "Accept-Encoding", "gzip, br")
				n++
				if s := g.Tokens("tokens"); w.Code != 200 || s.Actual != 107*n || s.Input != 7*n || s.Output != 100*n {
					t.Fatalf("a body of %d bytes and an answer in pieces of %d: status %d, %+v after %d answers", size, piece, w.Code, s, n)
				}
			}
		}
	}
	if whole, part := g.BodiesRead(); whole != 18 || part != 12 {
		t.Errorf("%d bodies were read and %d in part, want 18 and 12", whole, part)
	}
}

// TestBrokenBody: an error of the body is left to the handler, behind the bytes before it.
func TestBrokenBody(t *testing.T) {
	g := tokenGuard(t, 1000)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/x/completions", io.MultiReader(strings.NewReader("abc"), broken{}))
	httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if string(got) != "abc" || !errors.Is(err, errBroken) {
			t.Errorf("the handler got %q and %v", got, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if _, part := g.BodiesRead(); part != 1 {
		t.Errorf("%d bodies were read in part", part)
	}
}

var errBroken = errors.New("broken")

// broken is a body that cannot be read.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, errBroken }

// TestStoppedStream: a stream whose key has no units left ends with the error event, and the context of the handler ends.
func TestStoppedStream(t *testing.T) {
	g := tokenGuard(t, 1000, func(r *guard.Rule) { r.OnSpent = guard.StopAnswer })
	w := posted(t, g, "/v1/x/completions", `{"max_tokens":10}`, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			if _, err := io.WriteString(w, wordChunk); err != nil {
				if !errors.Is(err, httplimit.ErrSpent) || r.Context().Err() == nil {
					t.Errorf("the write ends with %v, and the context with %v", err, r.Context().Err())
				}
				_, _ = io.WriteString(w, wordChunk)
				return
			}
			if i > 10_000 {
				t.Error("the stream goes on")
				return
			}
		}
	})
	if !strings.HasSuffix(w.Body.String(), "\n\n") || !strings.Contains(w.Body.String(), "The limit of rule tokens was reached") {
		t.Errorf("the answer is %q", w.Body.String()[max(0, w.Body.Len()-300):])
	}
	if s := g.Tokens("tokens"); s.Stopped != 1 || g.AnswersBy("tokens", "aborted") != 1 {
		t.Errorf("%+v", s)
	}
}

// TestRefusalsOfAPIs is a table of refusals: their bodies, and the fields that clients of model APIs read.
func TestRefusalsOfAPIs(t *testing.T) {
	for _, c := range []struct {
		api        tokens.API
		path, want string
	}{
		{tokens.OpenAI, "/v1/x/completions", `{"type":"error","error":{"type":"rate_limit_error","message":M,"param":null,"code":"rate_limit_exceeded"},"message":M}`},
		{tokens.Anthropic, "/v1/x/completions", `{"type":"error","error":{"type":"rate_limit_error","message":M,"param":null,"code":"rate_limit_exceeded"},"message":M}`},
		{tokens.Gemini, "/v1/x/completions", `{"error":{"code":429,"message":M,"status":"RESOURCE_EXHAUSTED"}}`},
		{tokens.Ollama, "/v1/x/completions", `{"error":M}`},
		{tokens.Cohere, "/v1/x/completions", `{"message":M}`},
		{tokens.Bedrock, "/v1/x/completions", `{"message":M}`},
		{tokens.Auto, "/v1/chat/completions", `{"type":"error","error":{"type":"rate_limit_error","message":M,"param":null,"code":"rate_limit_exceeded"},"message":M}`},
		{tokens.Auto, "/v1/models/g:generateContent", `{"error":{"code":429,"message":M,"status":"RESOURCE_EXHAUSTED"}}`},
	} {
		for _, period := range []time.Duration{time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s %s %v", c.api, c.path, period), func(t *testing.T) {
				g := tokenGuard(t, 1, func(r *guard.Rule) {
					r.SettleBody = &tokens.Settle{API: c.api}
					r.Policies[0].Limit.Per = period
				})
				ticket := guard.Ticket{Answer: new(guard.Answer)}
				refused := &httptest.ResponseRecorder{}
				for range 3 { // A window of a second may end in between.
					if err := g.Admit(t.Context(), &headgate.Request{Method: "POST", Path: c.path}, &ticket); err != nil {
						t.Fatal(err)
					}
					if refused = posted(t, g, c.path, "{}", fine); refused.Code == http.StatusTooManyRequests {
						break
					}
				}
				detail := `"Policy \"tokens\": 1 request per`
				_ = detail
				body := strings.TrimSpace(refused.Body.String())
				from := strings.Index(body, `essage":"`) + len(`essage":"`)
				if c.api == tokens.Ollama {
					from = len(`{"error":"`)
				}
				message := body[from-1:]
				end := 1
				for end < len(message) && (message[end] != '"' || message[end-1] == '\\') {
					end++
				}
				message = message[:end+1]
				if want := strings.ReplaceAll(c.want, "M", message); body != want || len(message) < 20 {
					t.Errorf("the body is %s, want %s", body, want)
				}
				ms, wait, again := refused.Header().Get("Retry-After-Ms"), refused.Header().Get("Retry-After"), refused.Header().Get("X-Should-Retry")
				if ms == "" || ms == "0" || wait == "" || wait == "0" || (again == "false") != (period == time.Hour) {
					t.Errorf("Retry-After is %q, Retry-After-Ms %q and X-Should-Retry %q", wait, ms, again)
				}
				if class := refused.Header().Get("X-Amzn-Errortype"); (class == "ThrottlingException") != (c.api == tokens.Bedrock) {
					t.Errorf("X-Amzn-Errortype is %q", class)
				}
			})
		}
	}
}
