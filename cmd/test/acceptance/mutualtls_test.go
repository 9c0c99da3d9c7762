package acceptance

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// mutual is a client of the listeners of a server. It shows a certificate.
type mutual struct {
	*instance

	tls *tls.Config
}

// Each way in gives "allow", "deny", "forbidden" for a rule that is not the caller's, or "unauthenticated" for a
// client that is no caller.
const (
	mutualForbidden       = "forbidden"
	mutualUnauthenticated = "unauthenticated"
)

// stream asks on a stream of headgate.v1.
func (m *mutual) stream(t *testing.T, path string) string {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+m.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(m.tls.Clone())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s, out := openStream(t, conn), new(headgatev1.DecideResponse)
	err = s.SendMsg(&headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: path}}})
	if err == nil || errors.Is(err, io.EOF) { // RecvMsg has the reason.
		err = s.RecvMsg(out)
	}
	switch answers := out.GetAnswers(); {
	case status.Code(err) == codes.Unauthenticated:
		return mutualUnauthenticated
	case err != nil || len(answers) != 1:
		return fmt.Sprint(answers, err)
	case codes.Code(answers[0].GetError().GetCode()) == codes.PermissionDenied:
		return mutualForbidden
	default:
		return map[headgatev1.Verdict]string{headgatev1.Verdict_VERDICT_ALLOW: "allow", headgatev1.Verdict_VERDICT_DENY: "deny"}[answers[0].GetVerdict()]
	}
}

// post asks by POST /v1/decide.
func (m *mutual) post(t *testing.T, path string) string {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: m.tls.Clone()}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: patience}
	r, err := client.Post("https://"+m.HTTP+"/v1/decide", "application/json", strings.NewReader(`{"path": "`+path+`"}`))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	var answer struct {
		Verdict string `json:"verdict"`
	}
	switch r.StatusCode {
	case http.StatusForbidden:
		return mutualForbidden
	case http.StatusUnauthorized:
		return mutualUnauthenticated
	case http.StatusOK:
		err = json.NewDecoder(r.Body).Decode(&answer)
	}
	if err != nil || answer.Verdict == "" {
		return fmt.Sprint(r.Status, err)
	}
	return answer.Verdict
}

// command asks by HG.DECIDE.
func (m *mutual) command(t *testing.T, path string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", m.RESP, m.tls)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "HG.DECIDE path="+path+"\r\nQUIT\r\n"); err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(bufio.NewReader(conn))
	for reply, word := range map[string]string{
		"\r\nallow\r\n": "allow", "\r\ndeny\r\n": "deny", "-NOPERM ": mutualForbidden, "-NOAUTH ": mutualUnauthenticated, "-WRONGPASS ": mutualUnauthenticated,
	} {
		if strings.Contains(string(text), reply) {
			return word
		}
	}
	return fmt.Sprintf("%q %v", text, err)
}

// connect opens a connection and waits for a byte of the server. A server refuses a certificate after the client has
// finished its handshake.
func (m *mutual) connect(at string) error {
	conn, err := tls.Dial("tcp", at, m.tls)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	return err
}

// TestMutualTLS: a client certificate names a caller on every way into the running binary. The rules of the caller
// apply, a certificate of no caller is refused, and one of another authority has no connection.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	a, others := newAuthority(t), newAuthority(t)
	own := a.issue(t, "127.0.0.1", 2)
	gateway, stranger, forged := a.issue(t, "gateway.internal", 3), a.issue(t, "stranger.internal", 4), others.issue(t, "gateway.internal", 5)
	listener := `{address: "127.0.0.1:0", auth: mtls, tls: {cert: ` + own.cert + ", key: " + own.key + ", client_ca: " + a.path + "}}"
	i := launchServer(t, file(t, `version: 1
rules:
  - {name: own, match: {path: /own}, key: [all], limits: [3/1d]}
  - {name: foreign, match: {path: /foreign}, key: [all], limits: [3/1d]}
server:
  grpc: `+listener+"\n  http: "+listener+"\n  resp: "+listener+`
  callers:
    - {name: gateway, certificate: gateway.internal, scopes: [decide], rules: [own]}
    - {name: auditor, certificate: 127.0.0.1, scopes: [decide], rules: [foreign]}
`+adminAnywhere))
	client := func(shows pair) *mutual {
		return &mutual{i, &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{shows.load(t)}}}
	}
	ways := map[string]func(*mutual, *testing.T, string) string{"stream": (*mutual).stream, "POST /v1/decide": (*mutual).post, "HG.DECIDE": (*mutual).command}
	check := func(what string, shows pair, path, want string) {
		t.Helper()
		for way, ask := range ways {
			if got := ask(client(shows), t, path); got != want {
				t.Errorf("%s, %s: got %s, want %s", what, way, got, want)
			}
		}
	}
	check("a foreign rule", gateway, "/foreign", mutualForbidden)
	check("a certificate of no caller", stranger, "/own", mutualUnauthenticated)
	check("the caller", gateway, "/own", "allow")     // Three units: the refusals took none.
	check("a used limit", gateway, "/own", "deny")    // All ways count together.
	check("another caller", own, "/foreign", "allow") // Also here, the refusals took none.
	for way, at := range map[string]string{"gRPC": i.GRPC, "HTTP": i.HTTP, "Redis protocol": i.RESP} {
		if err := client(forged).connect(at); err == nil || !strings.Contains(err.Error(), "unknown certificate authority") {
			t.Errorf("a certificate of another authority, %s: got %v", way, err)
		}
	}
}
