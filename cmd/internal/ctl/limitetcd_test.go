package ctl

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nowhere is an address where nothing listens.
const nowhere = "127.0.0.1:1"

// TestEndpoints checks whether the URLs for etcd's client have http or https.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		flags EtcdFlags
		want  []string
	}{
		{EtcdFlags{Etcd: []string{"a:1", " [::1]:2"}}, []string{"http://a:1", "http://[::1]:2"}},
		{EtcdFlags{Etcd: []string{"http://a:1", "b:1"}}, []string{"http://a:1", "http://b:1"}},
		{EtcdFlags{Etcd: []string{"https://a:1/"}}, []string{"https://a:1"}},
		{EtcdFlags{Etcd: []string{"a:1", "https://b:1"}, EtcdCA: "x"}, []string{"https://a:1", "https://b:1"}},
		{EtcdFlags{Etcd: []string{"a:1"}, EtcdCert: "x", EtcdKey: "y"}, []string{"https://a:1"}},
	} {
		c.flags.Timeout, c.flags.Prefix = time.Second, "/"
		to, err := c.flags.target()
		if err != nil || !slices.Equal(to.endpoints(), c.want) {
			t.Errorf("%v: %v, %v; want %v", c.flags.Etcd, to, err, c.want)
		}
	}
}

// secret writes a file that only its owner can read.
func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPassword checks that a file with other text than the password is refused, and that no error
// contains the password.
func TestPassword(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", "hunter\t2": "hunter\t2",
		"": "", "\n": "", "hunter2\nhunter3\n": "", strings.Repeat("x", maxEtcdPassword+1): "",
	} {
		f := EtcdFlags{EtcdPasswordFile: secret(t, text)}
		got, err := f.password()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("password from %.20q: %q, %v", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestReach checks the different errors for an etcd that is unreachable, not trusted, without
// TLS, or silent. One address that answers is enough.
func TestReach(t *testing.T) {
	behind := httptest.NewUnstartedServer(http.NotFoundHandler())
	behind.EnableHTTP2 = true                           // gRPC needs HTTP/2.
	behind.Config.ErrorLog = log.New(io.Discard, "", 0) // Clients that do not trust the server cause log lines.
	behind.StartTLS()
	defer behind.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	broken, err := net.Listen("tcp", "127.0.0.1:0") // This server closes each connection, as etcd without TLS does.
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	go endEach(broken)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // This server accepts connections and never answers.
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := func(url string) string { return url[strings.LastIndex(url, "/")+1:] }
	ours := secret(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: behind.Certificate().Raw})))
	for _, c := range []struct {
		name  string
		flags EtcdFlags
		want  string
	}{
		{"refused", EtcdFlags{Etcd: []string{nowhere}}, nowhere + ": connection refused; start it, or name"},
		{"all refused", EtcdFlags{Etcd: []string{nowhere, "127.0.0.1:2"}}, nowhere + ": connection refused; 127.0.0.1:2: connection refused; start"},
		{"one answers", EtcdFlags{Etcd: []string{nowhere, address(plain.URL)}}, ""},
		{"trusted", EtcdFlags{Etcd: []string{address(behind.URL)}, EtcdCA: ours}, ""},
		{"not trusted", EtcdFlags{Etcd: []string{behind.URL}}, "certificate signed by unknown authority"},
		{
			"no TLS",
			EtcdFlags{Etcd: []string{address(plain.URL)}, EtcdCA: ours},
			"the server does not use TLS: write http:// in place of https://, and leave --etcd-ca and --etcd-cert out",
		},
		{"ended", EtcdFlags{Etcd: []string{"https://" + broken.Addr().String()}}, "the server may not use TLS: write http:// in place of https://"},
		{"silent", EtcdFlags{Etcd: []string{silent.Addr().String()}, EtcdCA: ours, Timeout: 100 * time.Millisecond}, "no answer"},
		{"no authority", EtcdFlags{Etcd: []string{behind.URL}, EtcdCA: secret(t, "nonsense")}, "has no certificate: write PEM into it"},
		{"long authority", EtcdFlags{Etcd: []string{behind.URL}, EtcdCA: secret(t, strings.Repeat("x", maxEtcdFile+1))}, "has more than 1048576 bytes"},
	} {
		if c.flags.Timeout == 0 {
			c.flags.Timeout = 10 * time.Second
		}
		c.flags.Prefix = "/"
		to, err := c.flags.target()
		if err != nil {
			t.Fatal(err)
		}
		var secure *tls.Config
		if secure, err = c.flags.tlsConfig(to); err == nil {
			err = to.reach(t.Context(), secure, c.flags.Timeout)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(c.want, "TLS") && strings.Contains(err.Error(), "start it") {
			t.Errorf("%s: %v: the advice to start etcd is wrong here", c.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&etcdTarget{addresses: []string{silent.Addr().String()}}).reach(ctx, nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt, the error is %v", err)
	}
}

// endEach reads a few bytes of each connection and closes it.
func endEach(from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(conn, make([]byte, 5))
		_ = conn.Close()
	}
}

// TestEtcdErrors checks that an error says what to check and is escaped for a terminal.
func TestEtcdErrors(t *testing.T) {
	f := EtcdFlags{Timeout: 5 * time.Second, Prefix: "/pace/"}
	to := &etcdTarget{addresses: []string{"a:1", "b:1"}}
	const silent = "etcd at a:1, b:1 accepts connections but does not answer within 5s: check for a leader"
	for _, c := range []struct {
		err  error
		user string
		want string
	}{
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), "", silent},
		{status.Error(codes.Unavailable, "connection\x1b closed"), "", `connection\x1b closed`},
		{rpctypes.ErrNoLeader, "", silent},
		{rpctypes.ErrPermissionDenied, "", "etcd refuses requests without a user: name a user with --etcd-user"},
		{fmt.Errorf("reading: %w", rpctypes.ErrUserEmpty), "", "etcd refuses requests without a user"},
		{rpctypes.ErrAuthFailed, "joe\x1b", `etcd refuses joe\x1b: check the password, and the permissions for keys below /pace/`},
		{rpctypes.ErrNoSpace, "", "ctl: etcdserver: mvcc: database space exceeded"},
		{errors.New("what\x1b[2J"), "", `ctl: what\x1b[2J`},
		{fmt.Errorf("reading: %w", context.Canceled), "", "ctl: interrupted"},
		{fmt.Errorf("pace/etcd: windows of 1s and of 7d"), "", "ctl: windows of 1s and of 7d"},
	} {
		f.EtcdUser = c.user
		if err := f.explain(to, c.err); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("explain of %q: %q, want %q", c.err, err, c.want)
		}
	}
	if err := f.explain(to, nil); err != nil {
		t.Errorf("explain of no error returns %v", err)
	}
}
