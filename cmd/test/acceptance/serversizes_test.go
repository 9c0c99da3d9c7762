package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// padded adds blanks to a body, up to a size.
func padded(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }

// postBody sends a body to POST /v1/decide, and gives the status and the verdicts.
func postBody(t *testing.T, at, body string) (code int, verdicts map[string]int) {
	t.Helper()
	answer, err := http.Post("http://"+at+"/v1/decide", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	verdicts = map[string]int{}
	var all []struct {
		Verdict string `json:"verdict"`
	}
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%.200s: %v", text, err)
		}
	}
	for _, a := range all {
		verdicts[a.Verdict]++
	}
	return answer.StatusCode, verdicts
}

// largestRequest has as many and as long fields as a request may have.
func largestRequest() string {
	entries := func(n, length int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("n", i)] = strings.Repeat("x", length)
		}
		return all
	}
	descriptors := make([]map[string]string, 32)
	for i := range descriptors {
		descriptors[i] = map[string]string{"key": fmt.Sprintf("%04096d", i), "value": strings.Repeat("v", 4096)}
	}
	text, err := json.Marshal(map[string]any{
		"method": strings.Repeat("M", 32), "host": "a.example", "path": "/" + strings.Repeat("p", 16<<10-1), "ip": "2001:db8::1",
		"subject": strings.Repeat("s", 4096), "domain": strings.Repeat("d", 4096), "cost": 1,
		"headers": entries(64, 16<<10), "cookies": entries(64, 16<<10), "descriptors": descriptors,
	})
	if err != nil {
		panic(err) // Maps of texts.
	}
	return string(text)
}

// TestServerBodies: a body has at most max_body, by default 64 KiB and up to 4 MiB. So many bytes are decided, with 1,000
// requests or with the largest fields, and one more is refused.
func TestServerBodies(t *testing.T) {
	t.Parallel()
	const rules = "rules: [{name: shop, match: {domain: shop}, key: ['descriptor:k'], limits: [700/1d]}]\n"
	const small, large = 64 << 10, 4 << 20
	byDefault := launchServer(t, file(t, "version: 1\nserver: {grpc: off, http: '127.0.0.1:0'}\n"+rules+adminAnywhere))
	longer := launchServer(t, file(t, "version: 1\nserver: {grpc: off, http: {address: '127.0.0.1:0', max_body: 4MiB}}\n"+rules+adminAnywhere))
	one := `{"domain":"shop","descriptors":[{"key":"k","value":"` + strings.Repeat("v", 4096) + `"}]}`
	thousand := "[" + one + strings.Repeat(","+one, 999) + "]"
	for _, row := range []struct {
		about, at, body string
		status          int
		allow, deny     int
	}{
		{"64 KiB by default", byDefault.HTTP, padded("[{}]", small), http.StatusOK, 1, 0},
		{"64 KiB and one byte by default", byDefault.HTTP, padded("[{}]", small+1), http.StatusRequestEntityTooLarge, 0, 0},
		{"4 MiB", longer.HTTP, padded("[{}]", large), http.StatusOK, 1, 0},
		{"4 MiB and one byte", longer.HTTP, padded("[{}]", large+1), http.StatusRequestEntityTooLarge, 0, 0},
		{"the largest fields", longer.HTTP, padded("["+largestRequest()+"]", large), http.StatusOK, 1, 0},
		{"1,000 requests", longer.HTTP, padded(thousand, large), http.StatusOK, 700, 300},
		{"1,000 requests and one byte", longer.HTTP, padded(thousand, large+1), http.StatusRequestEntityTooLarge, 0, 0},
		{"1,001 requests", longer.HTTP, "[{}" + strings.Repeat(",{}", 1000) + "]", http.StatusBadRequest, 0, 0},
	} {
		code, verdicts := postBody(t, row.at, row.body)
		if code != row.status || verdicts["allow"] != row.allow || verdicts["deny"] != row.deny || len(verdicts) > 2 {
			t.Errorf("%s: got %d %v, want %d with %d and %d", row.about, code, verdicts, row.status, row.allow, row.deny)
		}
	}
}

// messageOfSize is a message of 1,000 requests with a size in bytes.
func messageOfSize(t *testing.T, size int) *headgatev1.DecideRequest {
	t.Helper()
	m := new(headgatev1.DecideRequest)
	for range 1000 {
		m.Requests = append(m.Requests, &headgatev1.Request{
			Domain: "shop", Descriptors: []*headgatev1.Descriptor{{Key: "k", Value: strings.Repeat("v", 4096)}},
		})
	}
	for _, r := range m.GetRequests() { // The paths fill the rest.
		for n := min(16<<10, size-proto.Size(m)); n > 0; n-- {
			r.Path = "/" + strings.Repeat("p", n-1)
			if missing := size - proto.Size(m); missing == 0 {
				return m
			} else if missing > 3 { // The shortest path takes 3 bytes.
				break
			}
		}
	}
	t.Fatalf("no message has %d bytes", size)
	return nil
}

// TestServerMessages: a message of gRPC has at most 4 MiB, in a unary call and on a stream.
func TestServerMessages(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, "version: 1\nserver: {grpc: '127.0.0.1:0', http: off}\n"+
		"rules: [{name: shop, match: {domain: shop}, key: ['descriptor:k'], limits: [1500/1d]}]\n"+adminAnywhere))
	conn := dialServer(t, i.GRPC)
	full, long := messageOfSize(t, 4<<20), messageOfSize(t, 4<<20+1)
	unary := func(m *headgatev1.DecideRequest) (*headgatev1.DecideResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		out := new(headgatev1.DecideResponse)
		return out, conn.Invoke(ctx, "/headgate.v1.Decisions/Decide", m, out, grpc.WaitForReady(true))
	}
	stream := func(m *headgatev1.DecideRequest) (*headgatev1.DecideResponse, error) {
		stream, out := openStream(t, conn), new(headgatev1.DecideResponse)
		_ = stream.SendMsg(m) // RecvMsg has the reason.
		return out, stream.RecvMsg(out)
	}
	for _, way := range []struct {
		about   string
		ask     func(*headgatev1.DecideRequest) (*headgatev1.DecideResponse, error)
		allowed int
	}{{"a unary call", unary, 1000}, {"a stream", stream, 500}} {
		if _, err := way.ask(long); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s, 4 MiB and one byte: %v, want RESOURCE_EXHAUSTED", way.about, err)
		}
		got, err := way.ask(full)
		allowed := 0
		for _, a := range got.GetAnswers() {
			if a.GetVerdict() == headgatev1.Verdict_VERDICT_ALLOW {
				allowed++
			}
		}
		if err != nil || len(got.GetAnswers()) != 1000 || allowed != way.allowed {
			t.Errorf("%s, 4 MiB: %d answers and %d allowed, %v, want 1,000 and %d", way.about, len(got.GetAnswers()), allowed, err, way.allowed)
		}
	}
}
