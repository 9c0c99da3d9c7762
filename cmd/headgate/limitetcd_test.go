package main

import (
	"bytes"
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

	"github.com/headgate/headgate/pace/etcd"
)

// nowhere is an address where nothing listens.
const nowhere = "127.0.0.1:1"

// TestLimitUsage: what makes no sense is wrong usage, and etcd is not asked; what does is asked.
func TestLimitUsage(t *testing.T) {
	const asked = "no etcd can be reached: 127.0.0.1:1: connection refused; start it, or name its client addresses with --etcd"
	for args, want := range map[string]string{
		"":                                                 `expected one of "get", "set", "watch", "delete"`,
		"get":                                              asked,
		"get mail --json":                                  asked,
		"set a.B_c:d-9 10/1m":                              asked,
		"set mail 10/1m --balance demand":                  asked,
		"set mail 0/s --allow-zero --wait 0s":              asked,
		"watch mail":                                       asked,
		"delete mail --if-revision 17":                     asked,
		"get --admin 127.0.0.1:9902":                       "--admin is the address of an instance, and limits are in etcd: leave it out, and name etcd with --etcd",
		"get ../x":                                         `provider "../x": a name has 1 to 128 letters, digits and . _ : -`,
		"watch ü":                                          `provider "ü": a name has`,
		"delete mail/limit":                                `provider "mail/limit": a name has`,
		"watch":                                            "no provider is named: write it behind the command, like mail",
		"set mail":                                         "no limit is given: write it behind the provider, like 50000/s",
		"set mail/x 1/s":                                   `provider "mail/x": a name has`,
		"set mail 5":                                       `limit "5" has no period: limit must be like 500/2s`,
		"set mail 0/s":                                     "limit 0/1s stops all calls to mail: add --allow-zero if that is meant",
		"set mail 1/us":                                    "limit 1/1µs has a window out of range: use 1ms to 366d",
		"set mail 1/367d":                                  "limit 1/367d has a window out of range",
		"set mail 1099511627777/s":                         "limit 1099511627777/1s is too great: use 0 to 1099511627776",
		"set mail 5/s --balance fair":                      `--balance is "fair": write even, or demand`,
		"set mail 5/s --if-revision=-1":                    "--if-revision is -1: write the revision that headgate ctl limit get shows",
		"delete mail --if-revision=-1":                     "--if-revision is -1",
		"set mail 5/s --wait=-1s":                          "--wait is -1s: write how long to wait",
		"get --timeout 0s":                                 "--timeout is 0s",
		"get --etcd nonsense":                              `--etcd "nonsense" is no address: write host:port, like 127.0.0.1:2379, or https://host:port`,
		"get --etcd ftp://127.0.0.1:1":                     "is no address",
		"get --etcd 127.0.0.1:0":                           "is no address",
		"get --etcd 127.0.0.1:65536":                       "is no address",
		"get --etcd :2379":                                 "is no address",
		"get --etcd http://127.0.0.1:1/x":                  "is no address",
		"get --etcd http://a@b:1":                          "is no address",
		"get --etcd http://127.0.0.1:1/":                   asked,
		"get --etcd https://a:1,b:1":                       "addresses with TLS and without",
		"get --etcd-cert x":                                "--etcd-cert and --etcd-key go together",
		"get --etcd-key x":                                 "--etcd-cert and --etcd-key go together",
		"get --etcd-user x":                                "--etcd-user has a password: name the file that holds it with --etcd-password-file",
		"get --etcd-password-file x":                       "--etcd-password-file is of a user",
		"get --etcd http://a:1 --etcd-ca x":                "--etcd http://a:1 is without TLS",
		"get --etcd-ca /nowhere":                           "--etcd-ca: open /nowhere: no such file",
		"get --etcd-cert /no --etcd-key /no":               "--etcd-cert: open /no: no such file",
		"get --etcd-user x --etcd-password-file /no":       "--etcd-password-file: open /no: no such file",
		"get --prefix " + strings.Repeat("x", 257):         "of 257 bytes: write one of at most 256 bytes that ends with /, like /headgate/pace/",
		"get --prefix /pace":                               `--prefix is "/pace", of 5 bytes: write one of at most 256 bytes that ends with /`,
		"set mail 7/1500500ns":                             `has the unknown unit "ns"`,
		"set mail 7/1.005ms":                               asked,
		"set mail 7/1.0000005s":                            "limit 7/1.0000005s has a window of no whole microseconds",
		"get --etcd " + strings.Repeat("a:1,", 32) + "a:1": "--etcd has 33 addresses: write 1 to 32 of them",
	} {
		t.Setenv("HEADGATE_ETCD", nowhere)
		t.Setenv("HEADGATE_ADMIN_LISTEN", nowhere) // Of no use here, and nobody's mistake.
		var stderr bytes.Buffer
		status, wanted := run(append([]string{"ctl", "limit"}, strings.Fields(args)...), new(bytes.Buffer), &stderr), exitWrong
		if want == asked {
			wanted = exitFailed
		}
		if status != wanted || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, want %d and %q: %s", args, status, wanted, want, stderr.String())
		}
	}
}

// TestLimitHelp: the help names the defaults that hold, and no address of an instance; that of
// other commands still does.
func TestLimitHelp(t *testing.T) {
	for args, admin := range map[string]bool{"ctl limit --help": false, "ctl limit set --help": false, "ctl shares --help": true, "ctl --help": true} {
		var stdout bytes.Buffer
		if status := run(strings.Fields(args), &stdout, new(bytes.Buffer)); status != exitFine {
			t.Errorf("%s: status %d", args, status)
		}
		if strings.Contains(stdout.String(), "--admin") != admin || !strings.Contains(stdout.String(), "--json") {
			t.Errorf("%s prints\n%s", args, stdout.String())
		}
		text := strings.Join(strings.Fields(stdout.String()), " ")
		if strings.HasPrefix(args, "ctl limit") && !strings.Contains(text, "--prefix=\""+etcd.DefaultPrefix+"\" ") {
			t.Errorf("%s does not name the default prefix:\n%s", args, stdout.String())
		}
	}
}

// TestEndpoints: addresses are given to etcd's client with TLS or without, as the flags say.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		flags etcdFlags
		want  []string
	}{
		{etcdFlags{Etcd: []string{"a:1", " [::1]:2"}}, []string{"http://a:1", "http://[::1]:2"}},
		{etcdFlags{Etcd: []string{"http://a:1", "b:1"}}, []string{"http://a:1", "http://b:1"}},
		{etcdFlags{Etcd: []string{"https://a:1/"}}, []string{"https://a:1"}},
		{etcdFlags{Etcd: []string{"a:1", "https://b:1"}, EtcdCA: "x"}, []string{"https://a:1", "https://b:1"}},
		{etcdFlags{Etcd: []string{"a:1"}, EtcdCert: "x", EtcdKey: "y"}, []string{"https://a:1"}},
	} {
		c.flags.Timeout, c.flags.Prefix = time.Second, "/"
		to, err := c.flags.target()
		if err != nil || !slices.Equal(to.endpoints(), c.want) {
			t.Errorf("%v: %v, %v; want %v", c.flags.Etcd, to, err, c.want)
		}
	}
}

// secret writes a file that nobody else sees.
func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPassword: a file has the password and nothing else, and no error repeats it.
func TestPassword(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", "hunter\t2": "hunter\t2",
		"": "", "\n": "", "hunter2\nhunter3\n": "", strings.Repeat("x", maxEtcdPassword+1): "",
	} {
		f := etcdFlags{EtcdPasswordFile: secret(t, text)}
		got, err := f.password()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("of %.20q: %q, %v", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestReach: an etcd that cannot be reached is told apart from one that is not trusted, one that
// speaks no TLS, and one that says nothing; one address that answers is enough.
func TestReach(t *testing.T) {
	behind := httptest.NewUnstartedServer(http.NotFoundHandler())
	behind.EnableHTTP2 = true                           // As gRPC needs it.
	behind.Config.ErrorLog = log.New(io.Discard, "", 0) // Of clients that do not trust it.
	behind.StartTLS()
	defer behind.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	broken, err := net.Listen("tcp", "127.0.0.1:0") // It ends each connection, as etcd without TLS does.
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	go endEach(broken)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // It takes connections, and says nothing.
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := func(url string) string { return url[strings.LastIndex(url, "/")+1:] }
	ours := secret(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: behind.Certificate().Raw})))
	for _, c := range []struct {
		name  string
		flags etcdFlags
		want  string
	}{
		{"refused", etcdFlags{Etcd: []string{nowhere}}, nowhere + ": connection refused; start it, or name"},
		{"all refused", etcdFlags{Etcd: []string{nowhere, "127.0.0.1:2"}}, nowhere + ": connection refused; 127.0.0.1:2: connection refused; start"},
		{"one answers", etcdFlags{Etcd: []string{nowhere, address(plain.URL)}}, ""},
		{"trusted", etcdFlags{Etcd: []string{address(behind.URL)}, EtcdCA: ours}, ""},
		{"not trusted", etcdFlags{Etcd: []string{behind.URL}}, "certificate signed by unknown authority"},
		{
			"no TLS",
			etcdFlags{Etcd: []string{address(plain.URL)}, EtcdCA: ours},
			"it answers without TLS: write http:// in place of https://, and leave --etcd-ca and --etcd-cert out",
		},
		{"ended", etcdFlags{Etcd: []string{"https://" + broken.Addr().String()}}, "perhaps it speaks no TLS: write http:// in place of https://"},
		{"silent", etcdFlags{Etcd: []string{silent.Addr().String()}, EtcdCA: ours, Timeout: 100 * time.Millisecond}, "no answer"},
		{"no authority", etcdFlags{Etcd: []string{behind.URL}, EtcdCA: secret(t, "nonsense")}, "has no certificate: write PEM into it"},
		{"long authority", etcdFlags{Etcd: []string{behind.URL}, EtcdCA: secret(t, strings.Repeat("x", maxEtcdFile+1))}, "has more than 1048576 bytes"},
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
			t.Errorf("%s: %v: it is there, and need not be started", c.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&etcdTarget{addresses: []string{silent.Addr().String()}}).reach(ctx, nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

// endEach reads a little of each connection and closes it.
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

// TestEtcdErrors: an error says what to look at, and nothing of it reaches a terminal unescaped.
func TestEtcdErrors(t *testing.T) {
	f := etcdFlags{Timeout: 5 * time.Second, Prefix: "/pace/"}
	to := &etcdTarget{addresses: []string{"a:1", "b:1"}}
	const silent = "etcd at a:1, b:1 takes connections and does not answer within 5s: has it a leader"
	for _, c := range []struct {
		err  error
		user string
		want string
	}{
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), "", silent},
		{status.Error(codes.Unavailable, "connection\x1b closed"), "", `connection\x1b closed`},
		{rpctypes.ErrNoLeader, "", silent},
		{rpctypes.ErrPermissionDenied, "", "etcd refuses nobody in particular: name a user with --etcd-user"},
		{fmt.Errorf("reading: %w", rpctypes.ErrUserEmpty), "", "etcd refuses nobody in particular"},
		{rpctypes.ErrAuthFailed, "joe\x1b", `etcd refuses joe\x1b: look at the password, and at the user's rights below /pace/`},
		{rpctypes.ErrNoSpace, "", "ctl: etcdserver: mvcc: database space exceeded"},
		{errors.New("what\x1b[2J"), "", `ctl: what\x1b[2J`},
		{fmt.Errorf("reading: %w", context.Canceled), "", "ctl: interrupted"},
		{fmt.Errorf("pace/etcd: windows of 1s and of 7d"), "", "ctl: windows of 1s and of 7d"},
	} {
		f.EtcdUser = c.user
		if err := f.explain(to, c.err); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("of %q: %q, want %q", c.err, err, c.want)
		}
	}
	if err := f.explain(to, nil); err != nil {
		t.Errorf("of no error: %v", err)
	}
}
