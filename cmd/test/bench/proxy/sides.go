package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// side is a proxy with its settings.
type side struct {
	name     string
	kind     contest.Kind
	server   server
	settings settings
}

// server is a program that a side starts.
type server struct {
	// program is the name of a program in the folder of Programs, or the package of a
	// program that must be installed.
	program   string
	installed bool
	// template is the name of the configuration file's template. A program without one
	// listens on an address of its own, and prints its URL.
	template string
	args     func(v *values) []string
	// fields means that responses have a RateLimit field when a limit applies.
	fields bool
}

func headgate() server {
	return server{program: "headgate", template: "headgate.yaml", fields: true, args: func(v *values) []string {
		return []string{"proxy", "--config", v.Config}
	}}
}

func nginx() server {
	return server{program: "nginx", installed: true, template: "nginx.conf", args: func(v *values) []string {
		return []string{"-p", v.Folder, "-e", "stderr", "-c", v.Config}
	}}
}

func haproxy() server {
	return server{program: "haproxy", installed: true, template: "haproxy.cfg", args: func(v *values) []string {
		return []string{"-db", "-f", v.Config}
	}}
}

// folderBefore is the folder of the program that is built from an earlier commit.
const folderBefore = "before"

// headgateBefore is Headgate of an earlier commit.
func headgateBefore() server {
	s := headgate()
	s.program = filepath.Join(folderBefore, s.program)
	return s
}

// floor is the least that a proxy in Go does: it looks at no header. It serves HTTP/1.1.
func floor(closes bool) server {
	return server{program: "floor", args: func(v *values) []string {
		args := []string{"--upstream", v.Upstream, fmt.Sprintf("--close=%v", closes), fmt.Sprintf("--refuse=%v", v.Refuse)}
		if v.TLS {
			args = append(args, "--certificate", v.Certificate)
		}
		return args
	}}
}

// bareProxy is httputil.ReverseProxy, with or without a pool of buffers.
func bareProxy(pool bool) server {
	return server{program: "bareproxy", args: func(v *values) []string {
		return []string{"--upstream", "http://" + v.Upstream, fmt.Sprintf("--pool=%v", pool)}
	}}
}

// start launches a side, and waits until it listens. Another program may take a port between
// its choice and its use: then start tries other ports.
func (p *Programs) start(ctx context.Context, s side, upstream string) (*process, error) {
	const most = 5
	for attempt := 1; ; attempt++ {
		started, err := p.launch(ctx, s, upstream)
		if err != nil {
			return nil, err
		}
		if err = started.listens(ctx); err == nil {
			return started, nil
		}
		started.stop()
		if attempt == most || !errors.Is(err, errEnded) {
			return nil, err
		}
	}
}

// launch starts the program of a side.
func (p *Programs) launch(ctx context.Context, s side, upstream string) (*process, error) {
	v, err := p.newValues(s.settings, upstream)
	if err != nil {
		return nil, err
	}
	url := ""
	if s.server.template != "" {
		url = v.url()
		if err := v.render(s.server.template); err != nil {
			return nil, err
		}
	}
	program, err := s.server.path(p.dir)
	if err != nil {
		return nil, err
	}
	started, err := start(ctx, s.name, url, v.Folder, program, s.server.args(v)...)
	if err != nil {
		return nil, err
	}
	started.kind, started.health = s.kind, "http://"+v.Health
	started.decides = s.server.fields && (v.Rules > 0 || v.FairShare)
	if v.Log {
		started.accessLog = v.AccessLog
	}
	return started, nil
}

// path finds the program. Debian installs servers in /usr/sbin, which may not be in the
// user's PATH.
func (s *server) path(dir string) (string, error) {
	if !s.installed {
		return filepath.Join(dir, s.program), nil
	}
	for _, name := range []string{s.program, "/usr/sbin/" + s.program} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", notInstalled(s.program)
}

func notInstalled(program string) error {
	return errors.New("proxy: " + program + " is not installed: run make deps at the root")
}

// freeAddresses returns loopback addresses with ports that are free at the moment.
func freeAddresses(n int) ([]string, error) {
	listeners := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // The listener has no connection that could be lost.
		}
	}()
	addresses := make([]string, n)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // The listener is closed immediately.
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		addresses[i] = l.Addr().String()
	}
	return addresses, nil
}
