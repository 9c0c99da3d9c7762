// Package backend starts real web servers, nginx and Node.js, that answer with the request they
// received. Tests compare what a service sees with what the rules saw. The servers listen on
// Unix sockets in a folder of the test, and end with the test.
package backend

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// startTimeout bounds the start of a server on a busy machine.
const startTimeout = 30 * time.Second

// Separator separates the fields of an answer: Host, X-Api-Key, the method, the cookie session,
// and the decoded path. No field can contain it.
const Separator = "\x1f"

// Nginx starts nginx and returns the path of its socket.
func Nginx(tb testing.TB) string {
	tb.Helper()
	folder := newFolder(tb)
	socket := filepath.Join(folder, "nginx.sock")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
  server { listen unix:%[2]s; location / { return 200 "$http_host%[3]s$http_x_api_key%[3]s$request_method%[3]s$cookie_session%[3]s$uri"; } }
}
`, folder, socket, Separator)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	launch(tb, folder, socket, []string{"nginx", "/usr/sbin/nginx"}, "-p", folder, "-c", file)
	return socket
}

// Node starts a server with Node.js's http module and returns the path of its socket.
func Node(tb testing.TB) string {
	tb.Helper()
	folder := newFolder(tb)
	socket := filepath.Join(folder, "node.sock")
	script := fmt.Sprintf(`require("http").createServer((q, s) => { const h = q.headers;
  const pair = (h.cookie ?? "").split(";").map(p => p.trim()).find(p => /^session\s*=/.test(p)) ?? "=";
  const cookie = pair.slice(pair.indexOf("=") + 1).trim(), path = unescape(q.url.split("?")[0]);
  s.end(Buffer.from([h.host ?? "", h["x-api-key"] ?? "", q.method, cookie, path].join("\x1f"), "latin1")) }).listen(%q)`, socket)
	launch(tb, folder, socket, []string{"node", "nodejs"}, "-e", script)
	return socket
}

// newFolder creates a folder with a short name, because a socket's path has at most 107 bytes.
func newFolder(tb testing.TB) string {
	tb.Helper()
	folder, err := os.MkdirTemp("", "backend") //nolint:usetesting // because a test's name makes the path too long for a socket.
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// launch starts the first installed program and waits for its socket.
func launch(tb testing.TB, folder, socket string, programs []string, words ...string) {
	tb.Helper()
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		tb.Fatalf("%s is not installed: run make deps", programs[0])
	}
	log := filepath.Join(folder, "output")
	started, err := process.Launch(log, program, words)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(started.Kill)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline) && started.Running(); <-tick.C {
		if conn, err := net.Dial("unix", socket); err == nil { //nolint:noctx // it ends at once
			_ = conn.Close()
			return
		}
	}
	output, _ := os.ReadFile(log)
	tb.Fatalf("%s does not listen on %s: %s", program, socket, output)
}
