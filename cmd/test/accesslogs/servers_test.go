package accesslogs

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/internal/testkit/process"
)

// server is a server of Debian in front of the service.
type server struct {
	name    string // of the preset
	program string
	words   []string
	// settings is the file conf. Words such as %FOLDER stand for what a run has, and %LOG for the setting of logs.HowToLog.
	settings string
	// log is the file of the log; "" is standard output, and logger a program that writes it.
	log, combined string
	logger        []string
	http2         bool
}

const client = "header:X-Client-Id"

// servers are those of Debian, with their settings.
func servers() []server {
	return []server{
		{
			name: "nginx", program: "nginx", words: []string{"-e", "stderr", "-p", "%FOLDER", "-c", "conf"}, log: "access.log",
			combined: "combined.log", http2: true,
			settings: `daemon off; master_process off; pid nginx.pid; events {}
http {
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
	%LOG access_log combined.log combined;
	server { listen %FIRST; listen %SECOND http2; location / { proxy_pass http://%SERVICE; } }
}`,
		},
		{
			name: "haproxy", program: "haproxy", words: []string{"-db", "-f", "%FOLDER/conf"}, http2: true,
			settings: `global
  log stdout format raw local0
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend f
  bind %FIRST
  bind %SECOND proto h2
  log global
  %LOG
  default_backend b
backend b
  server s %SERVICE
`,
		},
		{
			name: "apache", program: "apache2", words: []string{"-X", "-f", "%FOLDER/conf"}, log: "access.log", combined: "combined.log", http2: true,
			settings: `ServerRoot %FOLDER
DefaultRuntimeDir %FOLDER
PidFile %FOLDER/pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
Protocols h2c http/1.1
ServerName localhost
User nobody
Group nogroup
Listen %FIRST
Listen %SECOND
ErrorLog /dev/stderr
%LOG
LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined
CustomLog %FOLDER/access.log headgate
CustomLog %FOLDER/combined.log combined
ProxyPass / http://%SERVICE/
`,
		},
		{
			name: "caddy", program: "caddy", words: []string{"run", "--config", "%FOLDER/conf", "--adapter", "caddyfile"}, log: "access.log",
			http2: true,
			settings: `{
	admin off
	auto_https off
	servers {
		protocols h1 h2c
	}
}
(site) {
	log {
		output file %FOLDER/access.log
		format json
	}
	reverse_proxy %SERVICE
}
http://:%PORT {
	bind %BIND
	import site
}
http://:%PORT2 {
	bind %BIND2
	import site
}
`,
		},
		{
			name: "varnish", program: "varnishd",
			words: []string{
				"-F", "-j", "none", "-n", "%FOLDER/n", "-f", "%FOLDER/conf", "-p", "feature=+http2", "-a", "%FIRST",
				"-a", "%SECOND",
			},
			log: "access.log", http2: true, logger: []string{"-n", "%FOLDER/n"},
			settings: `vcl 4.1;
backend b { .host = "%HOST"; .port = "%SERVICEPORT"; }
sub vcl_recv { return (pass); }
`,
		},
		{
			name: "squid", program: "squid", words: []string{"-N", "-f", "%FOLDER/conf"}, log: "access.log",
			settings: `http_port %FIRST accel defaultsite=localhost no-vhost
cache_peer %HOST parent %SERVICEPORT 0 no-query originserver no-digest
http_access allow all
cache deny all
visible_hostname localhost
strip_query_terms off
pid_filename %FOLDER/pid
coredump_dir %FOLDER
cache_log %FOLDER/cache.log
pinger_enable off
shutdown_lifetime 0 seconds
%LOG
`,
		},
		{
			name: "lighttpd", program: "lighttpd", words: []string{"-D", "-f", "%FOLDER/conf"}, log: "access.log",
			settings: `server.modules = ("mod_accesslog", "mod_proxy")
server.bind = "%BIND"
server.port = %PORT
server.document-root = "%FOLDER"
server.upload-dirs = ("%FOLDER")
accesslog.filename = "%FOLDER/access.log"
%LOG
proxy.server = ("" => (("host" => "%HOST", "port" => "%SERVICEPORT")))
`,
		},
	}
}

// service is what the servers protect. Paths name what it does.
func service(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = http.MaxBytesReader(w, r.Body, 1<<20).Read(make([]byte, 16))
		switch path.Base(r.URL.Path) {
		case "service", "abort":
			pause(delay)
		case "reader":
			_, _ = w.Write(make([]byte, 8<<20))
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// start starts the server, and returns its folder and its addresses, the second of which speaks HTTP/2.
func (s *server) start(t *testing.T) (folder, at, http2 string) {
	t.Helper()
	process.Require(t, "nginx-light haproxy apache2-bin caddy varnish squid lighttpd", s.program)
	folder = t.TempDir()
	for _, f := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(f, 0o777); err != nil { // Squid writes its log as another user than root.
			t.Fatal(err)
		}
	}
	behind := service(t)
	host, servicePort, _ := net.SplitHostPort(behind)
	at, http2 = process.FreeAddress(t), process.FreeAddress(t)
	bind, port, _ := net.SplitHostPort(at)
	bind2, port2, _ := net.SplitHostPort(http2)
	setting := strings.NewReplacer("/var/log/nginx/access.log", "access.log", "/var/log/squid", folder, "\nlog-format", "\n  log-format").Replace(
		logs.HowToLog(s.name, client))
	fill := strings.NewReplacer("%FOLDER", folder, "%SERVICEPORT", servicePort, "%SERVICE", behind, "%PORT2", port2, "%PORT", port,
		"%FIRST", at, "%SECOND", http2, "%BIND2", bind2, "%BIND", bind,
		"%HOST", host, "%LOG", setting)
	if err := os.WriteFile(filepath.Join(folder, "conf"), []byte(fill.Replace(s.settings)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(t, folder, s.program, "out", fill, s.words)
	await(t, s.name, func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if s.logger != nil {
		_, format, _ := strings.Cut(setting, "-F '")
		s.run(t, folder, "varnishncsa", s.log, fill, append(s.logger, "-F", strings.TrimSuffix(format, "'")))
		await(t, "varnishncsa", func() bool { return s.logs(t, folder, at) })
	}
	return folder, at, http2
}

// logs sends a request, and reports whether the log has a line.
func (s *server) logs(t *testing.T, folder, at string) bool {
	t.Helper()
	c := connect(t, at)
	c.read(c.get("ready", "GET", "", 0))
	text, _ := os.ReadFile(filepath.Join(folder, s.log))
	return len(text) > 0
}

// run starts a program, and ends it with the test.
func (s *server) run(t *testing.T, folder, program, output string, fill *strings.Replacer, words []string) {
	t.Helper()
	all := []string{"-C", folder, "HOME=" + folder, "XDG_DATA_HOME=" + folder, "XDG_CONFIG_HOME=" + folder, program}
	for _, w := range words {
		all = append(all, fill.Replace(w))
	}
	log := filepath.Join(folder, output)
	running, err := process.Launch(log, "env", all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = running.Signal(syscall.SIGTERM)
		select {
		case <-running.Ended():
		case <-time.After(patience):
		}
		running.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			lines, _ := os.ReadFile(filepath.Join(folder, s.log))
			t.Logf("%s:\n%s\n%s", program, text, lines)
		}
	})
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: nothing for %v", what, patience)
		}
	}
}
