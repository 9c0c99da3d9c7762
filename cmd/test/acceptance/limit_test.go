package acceptance

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/pace"
	paceetcd "github.com/headgate/headgate/pace/etcd"
)

// limits gives a function that runs headgate ctl limit with an etcd.
func limits(t *testing.T, flags ...string) func(args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return func(args ...string) (int, string, string) {
		t.Helper()
		return call(t, append(append([]string{"ctl", "limit"}, args...), flags...)...)
	}
}

// sharers are instances that share a provider's limit. Changes take effect within two seconds.
func sharers(t *testing.T, server *etcd.Server, provider string, instances int) []*pace.Pacer {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var all []*pace.Pacer
	for i := range instances {
		source, err := paceetcd.New(paceetcd.Config{
			Client: etcdclient.New(t, server.Addr), Provider: provider, ID: fmt.Sprintf("host-%d", i), Propagation: 500 * time.Millisecond, Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pace.New(pace.Config{Provider: provider, Source: source, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		all = append(all, p)
	}
	return all
}

// become waits until a condition holds.
func become(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("after %v it is not so that %s", patience, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// endsAs fails unless a command ended with a status and printed a matching text.
func endsAs(t *testing.T, wantStatus int, want string, status int, stdout, stderr string) {
	t.Helper()
	if status != wantStatus || !regexp.MustCompile(want).MatchString(stdout+stderr) {
		t.Errorf("status %d, want %d and %s in\n%s%s", status, wantStatus, want, stdout, stderr)
	}
}

// TestCtlLimit: an operator sets the limit of a provider. When the command ends, the instances
// share the new limit. A writer with an outdated revision changes nothing.
func TestCtlLimit(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ctl := limits(t, "--etcd", server.Addr)
	check := func(want int, match string, args ...string) {
		t.Helper()
		status, stdout, stderr := ctl(args...)
		endsAs(t, want, match, status, stdout, stderr)
	}
	check(0, `^no provider has a limit: set one`, "get")
	check(1, `mail has no limit: set one, like headgate ctl limit set mail 1000/s`, "get", "mail")
	check(1, `mail has no limit`, "delete", "mail")
	check(0, `^mail: no limit -> 40/1s \(even\), revision \d+\nin force when an instance starts: no instance is running now\n$`, "set", "mail", "40/s")
	check(1, `nothing was done: mail has 40/1s \(even\), revision \d+ now, and not no limit`, "set", "mail", "41/s", "--if-revision", "0")

	pacers := sharers(t, server, "mail", 3)
	become(t, "three instances share 40", func() bool {
		_, stdout, _ := ctl("get", "mail")
		return strings.Contains(stdout, "instances: 3\n") && strings.Contains(stdout, "in force since")
	})
	check(0, `(?m)^mail: 40/1s \(even\), revision \d+\nin force since \S+Z; instances: 3\n\nINDEX +PART +DEMAND +SEEN +ID\n`+
		`0 +13-14 +\d+ .*host-\d\n1 +13-14 +\d+ .*host-\d\n2 +13-14 +\d+ .*host-\d\n$`, "get", "mail")
	check(0, `(?m)^PROVIDER +LIMIT +BALANCE +REVISION +IN FORCE +INSTANCES +BRAKE\nmail +40/1s +even +\d+ +since \S+Z +3 +-\n$`, "get")

	check(0, `^mail: 40/1s \(even\), revision \d+ -> 60/1s \(even\), revision \d+\nin force from \S+Z \(in \S+s\), 3 instances\n$`, "set", "mail", "60/s")
	for _, p := range pacers {
		become(t, "each instance has 20", func() bool { s := p.Stats(); return s.Limit == 60 && s.Part == 20 })
	}
	check(0, `^mail: 60/1s \(even\), revision \d+ already\nin force since \S+Z, 3 instances\n$`, "set", "mail", "60/s")
	check(0, `"limit":\{"count":60,"per":"1s","balance":"even","revision":\d+,"valid":true\},"plan":\{"limit":60,"per":"1s","instances":3,`, "get", "mail", "--json")
	status, stdout, stderr := ctl("set", "mail", "0/s", "--allow-zero", "--json")
	endsAs(t, 0, `"after":\{"count":0,"per":"1s","balance":"even","revision":\d+,"valid":true\},"changed":true,"in_force":true`, status, stdout, stderr)
	for _, p := range pacers {
		become(t, "nothing may be called", func() bool { return p.Stats().Limit == 0 && !p.TryAcquire() })
	}
	check(0, `^mail: 0/1s \(even\), revision \d+ -> no limit\nrunning instances that keep the limit: 3; a limit of 0 stops their calls\n$`, "delete", "mail")
}

// TestCtlLimitRace: several writers with the same revision change one limit. Exactly one of them
// succeeds.
func TestCtlLimitRace(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ctl := limits(t, "--etcd", server.Addr)
	_, stdout, stderr := ctl("set", "mail", "40/s")
	revision := regexp.MustCompile(`revision (\d+)`).FindStringSubmatch(stdout)
	if revision == nil {
		t.Fatalf("no revision is told: %s%s", stdout, stderr)
	}
	type outcome struct {
		limit, status  int
		stdout, stderr string
	}
	outcomes := make([]outcome, 6)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() {
			o := &outcomes[i]
			o.limit = 100 + i
			o.status, o.stdout, o.stderr = ctl("set", "mail", strconv.Itoa(o.limit)+"/s", "--if-revision", revision[1])
		})
	}
	all.Wait()
	won := 0
	for _, o := range outcomes {
		switch {
		case o.status == 0 && won == 0:
			won = o.limit
		case o.status == 0:
			t.Errorf("%d and %d have both been set over revision %s", won, o.limit, revision[1])
		}
	}
	for _, o := range outcomes {
		if want := fmt.Sprintf("nothing was done: mail has %d/1s (even), revision ", won); o.status != 0 && !strings.Contains(o.stderr, want) {
			t.Errorf("of %d it is said\n%s, want %s", o.limit, o.stderr, want)
		}
	}
	if _, stdout, _ := ctl("get", "mail"); !strings.HasPrefix(stdout, fmt.Sprintf("mail: %d/1s (even)", won)) {
		t.Errorf("%d was set, and the limit is %s", won, stdout)
	}
}

// follower is a command that runs until it is interrupted.
type follower struct {
	t       *testing.T
	command *exec.Cmd
	lines   chan string // of both outputs; closed at the end
}

func follow(t *testing.T, args ...string) *follower {
	t.Helper()
	f := &follower{t: t, command: exec.Command(binary, args...), lines: make(chan string, 1000)}
	out, err := f.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	faults, err := f.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.command.Process.Kill() })
	var both sync.WaitGroup
	for _, from := range []io.Reader{out, faults} {
		both.Go(func() {
			for lines := bufio.NewScanner(from); lines.Scan(); {
				f.lines <- lines.Text()
			}
		})
	}
	go func() {
		both.Wait()
		close(f.lines)
	}()
	return f
}

// says waits for a matching line.
func (f *follower) says(want string) {
	f.t.Helper()
	var passed []string
	for deadline := time.After(patience); ; {
		select {
		case line, ok := <-f.lines:
			passed = append(passed, line)
			switch {
			case !ok:
				f.t.Fatalf("it ends without %s: %q", want, passed)
			case regexp.MustCompile(want).MatchString(line):
				return
			}
		case <-deadline:
			f.t.Fatalf("it does not say %s, but %q", want, passed)
		}
	}
}

// interrupt sends SIGINT, as Ctrl-C does. The command ends with status 0 and without errors.
func (f *follower) interrupt() {
	f.t.Helper()
	if err := f.command.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	for line := range f.lines {
		if strings.HasPrefix(line, "headgate:") {
			f.t.Errorf("after Ctrl-C it says %s", line)
		}
	}
	if err := f.command.Wait(); err != nil {
		f.t.Errorf("it ends with %v, want status 0", err)
	}
}

// TestCtlLimitWatch: a watch prints a line for each change, continues after a restart of etcd,
// and ends with Ctrl-C.
func TestCtlLimitWatch(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ctl := limits(t, "--etcd", server.Addr, "--wait", "0s")
	ctl("set", "mail", "40/s")
	people := follow(t, "ctl", "limit", "watch", "mail", "--etcd", server.Addr, "--timeout", "1s")
	people.says(`^\d\d:\d\d:\d\d\.\d{3}Z  mail: 40/1s \(even\), revision \d+; not in force; instances: 0$`)
	programs := follow(t, "ctl", "limit", "watch", "mail", "--etcd", server.Addr, "--json")
	programs.says(`^\{"provider":"mail","limit":\{"count":40,`)
	ctl("set", "mail", "50/2s")
	people.says(`mail: 50/2s \(even\)`)
	programs.says(`"limit":\{"count":50,"per":"2s"`)
	server.Kill()
	if status, stdout, stderr := ctl("set", "mail", "55/s"); status != 1 || !strings.Contains(stderr, "no etcd can be reached: "+server.Addr+": connection refused") {
		t.Errorf("without etcd: status %d: %s%s", status, stdout, stderr)
	}
	people.says(`^headgate: ctl: .*; retrying$`)
	server.Restart()
	people.says(`^headgate: etcd answers again$`)
	ctl("set", "mail", "60/s")
	people.says(`mail: 60/1s \(even\)`)
	programs.says(`"limit":\{"count":60,`)
	sharers(t, server, "mail", 1)
	people.says(`mail: 60/1s \(even\), revision \d+; in force (from|since) .*; instances: 1$`)
	programs.says(`"plan":\{"limit":60,"per":"1s","instances":1,`)
	people.interrupt()
	programs.interrupt()
}

// TestCtlLimitHostile: any program may write to etcd. Its values reach a terminal only escaped,
// and an invalid limit can be corrected.
func TestCtlLimitHostile(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ctl := limits(t, "--etcd", server.Addr)
	const prefix = paceetcd.DefaultPrefix
	ctl("set", "mail", "40/s")
	for key, value := range map[string]string{
		"mail/brake":           "{\"until_us\":4102444800000000,\"percent\":50,\"reason\":\"\x1b[2J\\u009b2J\",\"by\":\"host-1\"}",
		"mail/plan":            "{\"limit\":\"\x1b[2J\"}",
		"mail/members/\x1b[2J": `{"at_us":1,"demand":1}`,
		"\x1b[2J/limit":        `{"limit":1,"per":"1s"}`,
		"odd/limit":            "{\"limit\":-1,\"per\":\"\x1b[2J\"}",
		"odd/members/host":     "\x1b[2J",
		"big/limit":            `{"limit":1,"per":"1s","balance":"` + strings.Repeat("x", 100_000) + `"}`,
		"mailer":               "\x1b[2J",
	} {
		server.CTL("put", "--", prefix+key, value)
	}
	for _, args := range [][]string{{"get"}, {"get", "mail"}, {"get", "odd"}, {"get", "big"}, {"get", "--json"}, {"get", "mail", "--json"}} {
		_, stdout, stderr := ctl(args...)
		text := stdout + stderr
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) }); i >= 0 || len(text) > 10_000 {
			t.Errorf("headgate ctl limit %v prints %.1000q", args, text)
		}
	}
	for _, provider := range []string{"odd", "big"} {
		status, stdout, stderr := ctl("set", provider, "5/s")
		endsAs(t, 0, `-> 5/1s \(even\), revision \d+\n`, status, stdout, stderr)
		status, stdout, stderr = ctl("get", provider)
		endsAs(t, 0, `^`+provider+`: 5/1s \(even\), revision \d+\n`, status, stdout, stderr)
	}
}

// TestCtlLimitUsers: if etcd has users, only a user with the right can set a limit.
func TestCtlLimitUsers(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	for _, words := range []string{
		"user add root:rootword", "user add joe:joeword", "role add root",
		"user grant-role root root", //nolint:dupword // the user and the role are called so
		"role add pace",
		"role grant-permission pace readwrite --prefix=true /headgate/pace/mail", "user grant-role joe pace", "auth enable",
	} {
		server.CTL(strings.Fields(words)...)
	}
	password := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("joeword\n")
	joe := limits(t, "--etcd", server.Addr, "--etcd-user", "joe", "--etcd-password-file", password)
	status, stdout, stderr := joe("set", "mail", "40/s")
	endsAs(t, 0, `^mail: no limit -> 40/1s`, status, stdout, stderr)
	status, stdout, stderr = joe("set", "sms", "40/s")
	endsAs(t, 1, `etcd refuses joe: check the password, and the permissions for keys below /headgate/pace/`, status, stdout, stderr)
	status, stdout, stderr = limits(t, "--etcd", server.Addr)("get", "mail")
	endsAs(t, 1, `etcd refuses requests without a user: name a user with --etcd-user and --etcd-password-file`, status, stdout, stderr)
	write("guess\n")
	status, stdout, stderr = joe("get", "mail")
	endsAs(t, 1, `etcd refuses joe: check the password`, status, stdout, stderr)
	if strings.Contains(stderr, "guess") {
		t.Errorf("the password is told: %s", stderr)
	}
}

// TestCtlLimitTLS: the command reaches etcd by TLS with an authority, and with a client
// certificate if etcd requires one.
func TestCtlLimitTLS(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	ours := newAuthority(t)
	front := ours.issue(t, "etcd", 2)
	operator := ours.issue(t, "operator", 3)
	address := tlsFront(t, server.Addr, &tls.Config{
		Certificates: []tls.Certificate{front.load(t)}, ClientCAs: ours.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	})
	known := []string{"--etcd-cert", operator.cert, "--etcd-key", operator.key}
	status, stdout, stderr := limits(t, append(known, "--etcd", address, "--etcd-ca", ours.path)...)("set", "mail", "40/s")
	endsAs(t, 0, `^mail: no limit -> 40/1s`, status, stdout, stderr)
	status, stdout, stderr = limits(t, append(known, "--etcd", "https://"+address)...)("get")
	endsAs(t, 1, `certificate signed by unknown authority`, status, stdout, stderr)
	status, stdout, stderr = limits(t, "--etcd", address, "--etcd-ca", ours.path, "--timeout", "1s")("get")
	endsAs(t, 1, `does not answer within 1s`, status, stdout, stderr)
	status, stdout, stderr = limits(t, "--etcd", address, "--timeout", "1s")("get")
	endsAs(t, 1, `does not answer within 1s: .* and for TLS`, status, stdout, stderr)
	status, stdout, stderr = limits(t, append(known, "--etcd", server.Addr)...)("get")
	endsAs(t, 1, `the server may not use TLS: write http:// in place of https://, and leave --etcd-ca and --etcd-cert out`, status, stdout, stderr)
	var all struct {
		Limits []struct {
			Provider string `json:"provider"`
		} `json:"limits"`
	}
	_, stdout, _ = limits(t, append(known, "--etcd", "https://"+address, "--etcd-ca", ours.path, "--json")...)("get")
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all.Limits) != 1 || all.Limits[0].Provider != "mail" {
		t.Errorf("%v: %s", err, stdout)
	}
}

// tlsFront is a TLS listener in front of a server without TLS.
func tlsFront(t *testing.T, behind string, c *tls.Config) string {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		open.Wait()
	})
	open.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() { pipe(conn, behind) })
		}
	})
	return ln.Addr().String()
}

// pipe copies between a connection and a server until one of them ends.
func pipe(conn net.Conn, behind string) {
	defer conn.Close()
	to, err := net.DialTimeout("tcp", behind, patience)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, to}, {to, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}
