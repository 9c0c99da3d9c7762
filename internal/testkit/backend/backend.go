// Package backend starts real web servers, nginx and Node, that answer with what they
// were sent: the witnesses of tests that compare what a service sees with what the
// rules saw. They listen on sockets in a folder of the test, and end with it.
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

// starting is how long a server may take to listen on a busy machine.
const starting = 30 * time.Second

// Separator stands between the parts of an answer: Host, X-Api-Key, the method, the
// cookie session, and the decoded path. No part can contain it.
const Separator = "\x1f"

// Nginx starts nginx and gives the path of its socket.
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

// Node starts a server of Node's http module and gives the path of its socket.
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

// newFolder makes a folder with a short name: the path of a socket has 107 bytes.
func newFolder(tb testing.TB) string {
	tb.Helper()
	folder, err := os.MkdirTemp("", "backend") //nolint:usetesting // because a test's name makes the path too long for a socket.
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// launch starts the first of the programs that is installed, and waits for its socket.
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
	for deadline := time.Now().Add(starting); time.Now().Before(deadline) && started.Running(); <-tick.C {
		if conn, err := net.Dial("unix", socket); err == nil { //nolint:noctx // it ends at once
			_ = conn.Close()
			return
		}
	}
	output, _ := os.ReadFile(log)
	tb.Fatalf("%s does not listen on %s: %s", program, socket, output)
}
