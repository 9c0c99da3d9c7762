// Package cookiereaders reads Cookie fields with the real parsers of web frameworks. Tests compare what a service reads with
// what the rules count. The programs are Debian packages, which scripts/install-deps installs.
package cookiereaders

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/backend"
	"github.com/headgate/headgate/internal/testkit/process"
)

// startTimeout bounds the start of PHP on a busy machine, and each exchange with a server.
const startTimeout = 30 * time.Second

//go:embed testdata/readers.*
var programs embed.FS

// parsers is how many parsers Read asks.
const parsers = 8

// Name returns the name of a parser, by its place in Values.
func Name(at int) string {
	return [parsers]string{"Django", "werkzeug", "http.cookies", "Rack", "Express", "PHP", "nginx", "net/http"}[at]
}

// Value is what a parser reads as the cookie "session". Found is false for a parser that reads none.
type Value struct {
	Value string
	Found bool
}

// Values are what all parsers read.
type Values [parsers]Value

// Read reads each Cookie field with each parser. No field may contain a control character but a tab: a server of HTTP refuses
// it before a parser sees the field.
func Read(t *testing.T, fields []string) []Values {
	t.Helper()
	all := make([]Values, len(fields))
	folder := t.TempDir()
	for _, name := range []string{"readers.py", "readers.rb", "readers.js", "readers.php"} {
		text, err := programs.ReadFile("testdata/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lines(t, fields, all, 0, 3, "/usr/bin/python3", filepath.Join(folder, "readers.py"))
	lines(t, fields, all, 3, 1, "ruby", filepath.Join(folder, "readers.rb"))
	lines(t, fields, all, 4, 1, "node", filepath.Join(folder, "readers.js"))
	php := startPHP(t, filepath.Join(folder, "readers.php"))
	nginx := backend.Nginx(t)
	for i, field := range fields {
		all[i][5] = inHex(t, ask(t, "tcp", php, field))
		value := strings.Split(ask(t, "unix", nginx, field), backend.Separator)[3]
		all[i][6] = Value{value, value != ""}
		r := http.Request{Header: http.Header{"Cookie": {field}}}
		if c, err := r.Cookie("session"); err == nil {
			all[i][7] = Value{c.Value, true}
		}
	}
	return all
}

// lines runs a program that reads fields in hex and prints the values of n parsers.
func lines(t *testing.T, fields []string, all []Values, from, n int, program string, words ...string) {
	t.Helper()
	var in, complaints bytes.Buffer
	for _, field := range fields {
		in.WriteString(hex.EncodeToString([]byte(field)) + "\n")
	}
	command := exec.CommandContext(t.Context(), program, words...) //nolint:gosec // because Read names the programs.
	command.Stdin, command.Stderr = &in, &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s: run make deps", program, err, complaints.String())
	}
	read := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(read) != len(fields) {
		t.Fatalf("%s reads %d of %d fields", program, len(read), len(fields))
	}
	for i, line := range read {
		for j, value := range strings.Fields(line) {
			if j == n {
				t.Fatalf("%s prints %q", program, line)
			}
			all[i][from+j] = inHex(t, value)
		}
	}
}

// inHex reads a value as the programs print it.
func inHex(t *testing.T, text string) Value {
	t.Helper()
	switch text {
	case "-":
		return Value{}
	case "array":
		return Value{"an array", true}
	}
	decoded, err := hex.DecodeString(strings.TrimPrefix(text, "x"))
	if err != nil {
		t.Fatalf("a parser prints %q: %v", text, err)
	}
	return Value{string(decoded), true}
}

// startPHP starts PHP's own web server, and returns its address.
func startPHP(t *testing.T, script string) string {
	t.Helper()
	at, log := process.FreeAddress(t), script+".log"
	started, err := process.Launch(log, "php", []string{"-S", at, script})
	if err != nil {
		t.Fatalf("php: %v: run make deps", err)
	}
	t.Cleanup(started.Kill)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline) && started.Running(); <-tick.C {
		if conn, err := net.Dial("tcp", at); err == nil { //nolint:noctx // it ends at once
			_ = conn.Close()
			return at
		}
	}
	output, _ := os.ReadFile(log)
	t.Fatalf("php does not listen on %s: %s", at, output)
	return ""
}

// ask sends a Cookie field to a server, and returns the body of its answer.
func ask(t *testing.T, network, at, field string) string {
	t.Helper()
	conn, err := net.Dial(network, at) //nolint:noctx // the deadline bounds it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: %s\r\n\r\n", field)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s, Cookie %q: %v", at, field, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, Cookie %q: %d, %v", at, field, resp.StatusCode, err)
	}
	return string(body)
}
