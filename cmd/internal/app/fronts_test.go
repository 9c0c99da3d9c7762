package app

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/go-json-experiment/json"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// frontParts are parts of keys, and the requests of headgate.v1 that differ in them alone.
func frontParts() map[string]func(r *headgatev1.Request, value string) {
	return map[string]func(r *headgatev1.Request, value string){
		"method": func(r *headgatev1.Request, value string) { r.Method = map[string]string{"a": "GET", "b": "PUT"}[value] },
		"host":   func(r *headgatev1.Request, value string) { r.Host = value + ".example" },
		"ip": func(r *headgatev1.Request, value string) {
			r.Ip = map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"}[value]
		},
		"header:X-Client": func(r *headgatev1.Request, value string) { r.Headers = map[string]string{"X-Client": value} },
		"cookie:session":  func(r *headgatev1.Request, value string) { r.Cookies = map[string]string{"session": value} },
		"mtls_subject":    func(r *headgatev1.Request, value string) { r.Subject = "CN=" + value },
		"descriptor:tenant": func(r *headgatev1.Request, value string) {
			r.Descriptors = []*headgatev1.Descriptor{{Key: "tenant", Value: value}}
		},
	}
}

// TestFrontsGiveParts: each front of the decision server counts two requests apart that differ in a part of the key, or says that it
// cannot.
func TestFrontsGiveParts(t *testing.T) {
	parts := frontParts()
	names := slices.Sorted(maps.Keys(parts))
	text := "identity: {trusted_proxies: [127.0.0.1/32]}\nserver: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', resp: '127.0.0.1:0'}\nrules:\n"
	fronts := map[string]func(t *testing.T, c *clients, r *headgatev1.Request) string{
		"post": decidePost, "get": decideGet, "resp": decideRESP, "stream": decideGRPC, "envoy": decideEnvoy,
	}
	for front := range fronts {
		for i, name := range names {
			match := fmt.Sprintf("path: /%s/%d", front, i)
			if front == "envoy" {
				match = fmt.Sprintf("domain: %s%d", front, i)
			}
			text += fmt.Sprintf("- {name: %s%d, match: {%s}, key: [%q], limits: [1/365d]}\n", front, i, match, name)
		}
	}
	c := clientsOf(t, startServer(t, serverOptions(t, text)), "")
	lacks := map[string][]string{
		"get": {"mtls_subject", "descriptor:tenant"}, "envoy": {"method", "host", "ip", "header:X-Client", "cookie:session", "mtls_subject"},
	}
	for front, decide := range fronts {
		for i, name := range names {
			var got []string
			for _, value := range []string{"a", "b", "a"} {
				r := &headgatev1.Request{Method: "GET", Host: "h.example", Path: fmt.Sprintf("/%s/%d", front, i), Ip: "192.0.2.9"}
				if front == "envoy" {
					r.Domain = fmt.Sprint(front, i)
				}
				parts[name](r, value)
				answer := decide(t, c, r)
				if strings.Contains(answer, "cannot give") && strings.Contains(answer, name) {
					answer = "cannot give"
				}
				got = append(got, answer)
			}
			want := []string{"allow", "allow", "deny"}
			if slices.Contains(lacks[front], name) {
				want = slices.Repeat([]string{"cannot give"}, len(want))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s by %s: got %q, want %q", front, name, got, want)
			}
		}
	}
}

// verdictIn finds the verdict in a text, or gives the text.
func verdictIn(text, allow, deny string) string {
	switch {
	case strings.Contains(text, allow):
		return "allow"
	case strings.Contains(text, deny):
		return "deny"
	default:
		return text
	}
}

func decidePost(t *testing.T, c *clients, r *headgatev1.Request) string {
	t.Helper()
	entries := []map[string]string{}
	for _, d := range r.GetDescriptors() {
		entries = append(entries, map[string]string{"key": d.GetKey(), "value": d.GetValue()})
	}
	body, err := json.Marshal(map[string]any{
		"method": r.GetMethod(), "host": r.GetHost(), "path": r.GetPath(), "ip": r.GetIp(), "headers": r.GetHeaders(), "cookies": r.GetCookies(),
		"subject": r.GetSubject(), "descriptors": entries,
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.http+"/v1/decide", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_, text := sendTo(t, q)
	return verdictIn(text, `"verdict":"allow"`, `"verdict":"deny"`)
}

func decideGet(t *testing.T, c *clients, r *headgatev1.Request) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.http+"/v1/decide?from=original", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Original-Method": r.GetMethod(), "X-Original-Host": r.GetHost(), "X-Original-Uri": r.GetPath(), "X-Forwarded-For": r.GetIp(),
	} {
		q.Header.Set(name, value)
	}
	for name, value := range r.GetHeaders() {
		q.Header.Set(name, value)
	}
	for name, value := range r.GetCookies() {
		q.Header.Set("Cookie", name+"="+value)
	}
	status, text := sendTo(t, q)
	return verdictIn(fmt.Sprint(status, " ", text), "204 ", "429 ")
}

// sendTo sends a request, and gives the status and the body.
func sendTo(t *testing.T, q *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func decideRESP(t *testing.T, c *clients, r *headgatev1.Request) string {
	t.Helper()
	words := []string{"HG.DECIDE", "method=" + r.GetMethod(), "host=" + r.GetHost(), "path=" + r.GetPath(), "ip=" + r.GetIp()}
	if r.GetSubject() != "" {
		words = append(words, "subject="+r.GetSubject())
	}
	for name, value := range r.GetHeaders() {
		words = append(words, "header:"+name+"="+value)
	}
	for name, value := range r.GetCookies() {
		words = append(words, "cookie:"+name+"="+value)
	}
	for _, d := range r.GetDescriptors() {
		words = append(words, "descriptor:"+d.GetKey()+"="+d.GetValue())
	}
	return verdictIn(reply(t, c.resp, strings.Join(words, " ")), "allow", "deny")
}

func decideGRPC(t *testing.T, c *clients, r *headgatev1.Request) string {
	t.Helper()
	out := new(headgatev1.DecideResponse)
	if err := c.grpc.Invoke(t.Context(), "/headgate.v1.Decisions/Decide", &headgatev1.DecideRequest{Requests: []*headgatev1.Request{r}}, out); err != nil {
		t.Fatal(err)
	}
	return verdictIn(out.GetAnswers()[0].GetVerdict().String(), "ALLOW", "DENY")
}

func decideEnvoy(t *testing.T, c *clients, r *headgatev1.Request) string {
	t.Helper()
	entry := &commonv3.RateLimitDescriptor_Entry{Key: "k", Value: "v"}
	for _, d := range r.GetDescriptors() {
		entry.Key, entry.Value = d.GetKey(), d.GetValue()
	}
	answer, err := rlsv3.NewRateLimitServiceClient(c.grpc).ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
		Domain: r.GetDomain(), Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{entry}}},
	})
	if err != nil {
		return err.Error()
	}
	return verdictIn(answer.GetOverallCode().String(), "OK", "OVER_LIMIT")
}
