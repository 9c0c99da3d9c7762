package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// tokenRule is a rule "tokens" that settles by the body of answers in the form of OpenAI's API.
func tokenRule(tb testing.TB) guard.Rule {
	tb.Helper()
	all, err := rule.ParsePart("all")
	if err != nil {
		tb.Fatal(err)
	}
	return guard.Rule{
		Rule:       rule.Rule{Name: "tokens", Match: rule.Match{Path: "/v1/*"}, Key: []rule.Part{all}},
		Policies:   []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1 << 30, Per: time.Hour}}},
		SettleBody: &tokens.Settle{API: tokens.OpenAI},
		Estimate:   &tokens.Estimate{BytesPerToken: 4 * tokens.One, Output: 500, Image: 1000},
		MaxBody:    64 << 10,
	}
}

// tokenGuard makes a guard with a rule, and sets it in the Config of a proxy.
func tokenGuard(tb testing.TB, r guard.Rule) (*guard.Guard, func(*Config)) {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{r}})
	if err != nil {
		tb.Fatal(err)
	}
	return g, func(c *Config) { c.Guard, c.BodyIdle = g, 10*time.Second }
}

// settledTokens waits until n answers of a guard have stated their tokens.
func settledTokens(t *testing.T, g *guard.Guard, cause string, n uint64) guard.Tokens {
	t.Helper()
	eventually(t, fmt.Sprintf("%d answers with %s", n, cause), func() bool { return g.AnswersBy("tokens", cause) >= n })
	return g.Tokens("tokens")
}

const (
	chunk   = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}],\"usage\":null}\n\n"
	usageOf = "{\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%d,\"total_tokens\":%d}}"
)

// chatStream is a stream of n words with its usage: 7 tokens of input and n of output.
func chatStream(n int) string {
	return strings.Repeat(chunk, n) + "data: " + fmt.Sprintf(usageOf, n, n+7) + "\n\ndata: [DONE]\n\n"
}

// chatService answers like a service of chats: the body of the request says how.
type chatService struct {
	encodings atomic.Pointer[string] // the last Accept-Encoding
	lengths   atomic.Int64           // the bytes of the last request
}

func (s *chatService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.lengths.Store(int64(len(body)))
	accepts := r.Header.Get("Accept-Encoding")
	s.encodings.Store(&accepts)
	q := r.URL.Query()
	pieces, _ := strconv.Atoi(q.Get("piece"))
	text := chatStream(100)
	w.Header().Set("Content-Type", "text/event-stream")
	if q.Get("json") != "" {
		text = fmt.Sprintf(usageOf, 100, 107)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	if q.Get("gzip") != "" {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		text = b.String()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
	}
	for len(text) > 0 {
		n := min(pieces, len(text))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			return
		}
		if text = text[n:]; pieces > 1 {
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// TestTokens sends chats over both data planes and both protocols. The tokens of each answer are counted, in whatever pieces it comes,
// and the client gets its bytes unchanged.
func TestTokens(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		for name, protocol := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }} {
			t.Run(fmt.Sprintf("%s, fast %v", name, fast), func(t *testing.T) {
				t.Parallel()
				g, change := tokenGuard(t, tokenRule(t))
				service := new(chatService)
				behind := httptest.NewServer(service)
				defer behind.Close()
				_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
				client := httpClient(t, nil, protocol)
				n := uint64(0)
				for _, answer := range []string{"", "&gzip=1", "&json=1", "&json=1&gzip=1"} {
					for _, piece := range []int{1, 37, 64 << 10} {
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s/v1/chat/completions?piece=%d%s", at, piece, answer),
							strings.NewReader(`{"model":"m","max_tokens":100}`))
						if err != nil {
							t.Fatal(err)
						}
						r.Header.Set("Accept-Encoding", "br, gzip;q=0.9")
						res, err := client.Do(r)
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(res.Body)
						_ = res.Body.Close()
						if err != nil {
							t.Fatal(err)
						}
						if strings.Contains(answer, "gzip") {
							z, err := gzip.NewReader(bytes.NewReader(got))
							if err != nil {
								t.Fatal(err)
							}
							got, _ = io.ReadAll(z)
						}
						want := chatStream(100)
						if strings.Contains(answer, "json") {
							want = fmt.Sprintf(usageOf, 100, 107)
						}
						if string(got) != want {
							t.Fatalf("%s in pieces of %d: the client got %d bytes, want %d", answer, piece, len(got), len(want))
						}
						n++
						if s := settledTokens(t, g, "stated", n); s.Input != 7*n || s.Output != 100*n || s.Actual != 107*n {
							t.Fatalf("%s in pieces of %d: the tokens are %+v after %d answers", answer, piece, s, n)
						}
						if *service.encodings.Load() != "gzip" || service.lengths.Load() != 30 {
							t.Errorf("the service got %d bytes, and Accept-Encoding %q", service.lengths.Load(), *service.encodings.Load())
						}
					}
				}
				if s := g.Settled("tokens"); s.Estimates != 0 {
					t.Errorf("the estimate stayed %d times", s.Estimates)
				}
			})
		}
	}
}

// TestBodyBeforeTheDecision sends bodies of many sizes. The service gets each of them unchanged, whatever was read before the decision.
func TestBodyBeforeTheDecision(t *testing.T) {
	t.Parallel()
	const bound = 64 << 10
	for _, fast := range []bool{false, true} {
		for name, protocol := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }} {
			t.Run(fmt.Sprintf("%s, fast %v", name, fast), func(t *testing.T) {
				t.Parallel()
				g, change := tokenGuard(t, tokenRule(t))
				behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					_, _ = w.Write(body)
				}))
				defer behind.Close()
				_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
				client := httpClient(t, nil, protocol)
				wantWhole, wantPart := uint64(0), uint64(0)
				for _, size := range []int{0, 1, 100, 16 << 10, bound - 1, bound, bound + 1, 300_000} {
					for _, known := range []bool{true, false} {
						text := strings.Repeat("0123456789", size/10+1)[:size]
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/v1/echo/completions", strings.NewReader(text))
						if err != nil {
							t.Fatal(err)
						}
						if !known {
							r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), -1
						}
						r.Header.Set("Expect", "100-continue")
						res, err := client.Do(r)
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(res.Body)
						_ = res.Body.Close()
						if err != nil || string(got) != text {
							t.Errorf("a body of %d bytes, length known %v: %d bytes came back, %v", size, known, len(got), err)
						}
						switch {
						case size > bound, !known && size == bound:
							wantPart++
						case size > 0 || !known:
							wantWhole++
						}
					}
				}
				if whole, part := g.BodiesRead(); whole != wantWhole || part != wantPart {
					t.Errorf("%d bodies were read and %d in part, want %d and %d", whole, part, wantWhole, wantPart)
				}
			})
		}
	}
}

// TestBodyIsNotReadWithoutNeed: the service gets the beginning of a body whose rest never comes, unless a rule reads it.
func TestBodyIsNotReadWithoutNeed(t *testing.T) {
	for _, fast := range []bool{false, true} {
		g, change := tokenGuard(t, tokenRule(t))
		came := make(chan struct{}, 1)
		behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var b [1]byte
			if n, _ := r.Body.Read(b[:]); n == 1 {
				came <- struct{}{}
			}
		}))
		t.Cleanup(behind.Close)
		_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
		select {
		case <-came:
		case <-time.After(10 * time.Second):
			t.Error("the service gets no request before its body is whole")
		}
		if whole, part := g.BodiesRead(); whole+part > 0 {
			t.Errorf("%d bodies were read", whole+part)
		}
	}
}

// TestBrokenBody: a body that ends early or stops before the decision is refused, and takes no units.
func TestBrokenBody(t *testing.T) {
	for _, fast := range []bool{false, true} {
		for sent, want := range map[string]string{
			"POST /v1/x/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nxyz":          "400",
			"POST /v1/x/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n": "400",
		} {
			g, change := tokenGuard(t, tokenRule(t))
			_, at := start(t, beforeHandler(t, http.HandlerFunc(fine), change, onThePlane(fast)), nil, ServerConfig{})
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, sent)
			_ = conn.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(conn)
			_ = conn.Close()
			if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 "+want) {
				t.Errorf("fast %v: the answer to %q is %q", fast, sent, answer)
			}
			if s := g.Tokens("tokens"); s != (guard.Tokens{}) {
				t.Errorf("fast %v: %+v", fast, s)
			}
		}
	}
}

// TestClientLeavesAfterUsage: a client that closes at [DONE] pays what the answer stated, and one that leaves before pays at least its
// input and at most the reservation.
func TestClientLeavesAfterUsage(t *testing.T) {
	for _, fast := range []bool{false, true} {
		g, change := tokenGuard(t, tokenRule(t))
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			text := chatStream(3)
			if r.URL.Path == "/v1/early/completions" {
				text = strings.Repeat(chunk, 3)
			}
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(behind.Close)
		_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
		for _, path := range []string{"/v1/whole/completions", "/v1/early/completions"} {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+path, strings.NewReader(`{"max_tokens":1000}`))
			if err != nil {
				t.Fatal(err)
			}
			res, err := httpClient(t, nil, http1Only).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.CopyN(io.Discard, res.Body, int64(3*len(chunk)))
			if path == "/v1/whole/completions" {
				_, _ = io.CopyN(io.Discard, res.Body, int64(len(chatStream(3))-3*len(chunk)))
			}
			cancel()
			_ = res.Body.Close()
		}
		if s := settledTokens(t, g, "stated", 1); s.Actual != 10 {
			t.Errorf("fast %v: %+v", fast, s)
		}
		settledTokens(t, g, "aborted", 1)
	}
}

// TestLargeAnswer: a large answer is read without keeping it.
func TestLargeAnswer(t *testing.T) {
	const size = 64 << 20
	for _, fast := range []bool{false, true} {
		g, change := tokenGuard(t, tokenRule(t))
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			const begin, end = `{"text":"`, `","usage":{"prompt_tokens":7,"completion_tokens":100,"total_tokens":107}}`
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(begin)+size+len(end))) // Without the scan, the kernel would move it.
			_, _ = io.WriteString(w, begin)
			for piece, n := strings.Repeat("x", 1<<20), 0; n < size; n += len(piece) {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, end)
		}))
		t.Cleanup(behind.Close)
		_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
		res, err := httpClient(t, nil, http1Only).Post("http://"+at+"/v1/x/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, res.Body); n < size || err != nil {
			t.Errorf("fast %v: %d bytes, %v", fast, n, err)
		}
		_ = res.Body.Close()
		if s := settledTokens(t, g, "stated", 1); s.Actual != 107 {
			t.Errorf("fast %v: %+v", fast, s)
		}
	}
}
