package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/folder"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/cmd/internal/envoy/xds"
	follower "github.com/headgate/headgate/cmd/internal/source"
	"github.com/headgate/headgate/cmd/internal/source/etcd"
	sourcehttp "github.com/headgate/headgate/cmd/internal/source/http"
	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// busyMachine is what a loaded machine adds to a bound in these tests.
const busyMachine = time.Second

// silentServer accepts connections, and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			all = append(all, c)
		}
		for _, c := range all {
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

// everySection has a component for each part of an instance, whose other sides never answer.
func everySection(t *testing.T, server bool) Options {
	t.Helper()
	silent, folder := silentServer(t), t.TempDir()
	text := fmt.Sprintf(`store: redis://%[1]s
source: {etcd: {endpoints: ["http://%[1]s"]}, cache: %[2]q, without_state: allow}
rules: [{name: api, key: [ip], quota: calls}, {name: held, key: [ip], lease: held}]
default_plan: free
metering: {journal: %[3]q, instance: a, lines: {folder: %[4]q}, events: {url: "http://%[1]s"}}
`, silent, filepath.Join(folder, "cache"), filepath.Join(folder, "journal"), filepath.Join(folder, "lines"))
	if !server {
		o := options(t)
		text += fmt.Sprintf("lease: {servers: [%q]}\nproxy: {listen: '127.0.0.1:0', upstream: %q}\nserver: {}\n", silent, o.Config.Proxy.Upstream)
		o.Config = serverConfig(t, text)
		return o
	}
	text = strings.Replace(text, ", {name: held, key: [ip], lease: held}", "", 1)
	text += fmt.Sprintf("server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', resp: '127.0.0.1:0'}\n"+
		"lease: {resources: [{match: held, capacity: 5/s}], limits: {etcd: [%[1]q]}, election: {etcd: [%[1]q], group: g}}\n", silent)
	o := serverOptions(t, text)
	o.Outlets = &envoy.Outlets{Prometheus: "127.0.0.1:0", Path: "/metrics", Debug: "127.0.0.1:0", Receivers: []statsd.Config{
		{Network: "tcp", Address: silent, Interval: time.Second},
	}}
	o.Domains = endlessDomains{}
	return o
}

// endlessDomains is a source of domains that gives none.
type endlessDomains struct{}

func (endlessDomains) Follow(ctx context.Context, _ func([]guard.Domain) error, _ func(error)) error {
	<-ctx.Done()
	return nil
}

// TestDrainAfterTheEnd: no component waits, if the context of its Drain has ended, although nothing that it is connected to answers. All of
// them together take at most component.LastDrain.
func TestDrainAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]bool{"proxy": false, "server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, err := Start(t.Context(), everySection(t, server))
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", i.Addresses().Health)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			began := time.Now()
			if err := i.stopBy(0); err != nil {
				t.Logf("the drain says: %v", err)
			}
			if d := time.Since(began); d > component.LastDrain+busyMachine {
				t.Errorf("the instance takes %v, want at most %v", d, component.LastDrain)
			}
		})
	}
}

// TestEachDrainAfterTheEnd names the component that waits.
func TestEachDrainAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]bool{"proxy": false, "server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, err := Start(t.Context(), everySection(t, server))
			if err != nil {
				t.Fatal(err)
			}
			i.draining.Store(true)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for _, p := range slices.Backward(i.components) {
				began := time.Now()
				_ = p.Drain(ended)
				if d := time.Since(began); d > component.LastOfOne+busyMachine {
					t.Errorf("%T takes %v, want at most %v", p, d, component.LastOfOne)
				}
			}
			i.host.Wait(t.Context())
		})
	}
}

// deafSource does not end with its context, as a parser within a large document.
type deafSource struct{ reads chan struct{} }

func (d deafSource) Follow(context.Context, source.Receiver) { <-d.reads }
func (deafSource) Close() error                              { return nil }

// TestStopWhileTheSourceReads: a stop does not wait for a source that reads.
func TestStopWhileTheSourceReads(t *testing.T) {
	t.Parallel()
	o := serverOptions(t, fmt.Sprintf("source: {http: {url: 'http://127.0.0.1:1'}, cache: %q}\n", filepath.Join(t.TempDir(), "cache")))
	o.Config.ShutdownTimeout = time.Second
	i := newInstance(o)
	if err := i.makeComponents(); err != nil {
		t.Fatal(err)
	}
	deaf := deafSource{make(chan struct{})}
	t.Cleanup(func() { close(deaf.reads) })
	former := i.source
	var err error
	if i.source, err = follower.From(deaf, i.host, configuration{i}, o.Config, i.rules.QuotasOnly()); err != nil {
		t.Fatal(err)
	}
	i.components[slices.Index(i.components, component.Component(former))] = i.source
	if err := i.startComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > time.Second+component.LastDrain+busyMachine {
		t.Errorf("with a shutdown_timeout of 1s, the stop takes %v", d)
	}
}

// TestStopWhileTheFileIsRead: a stop does not wait for a reload that reads a large file, and the reload then changes nothing.
func TestStopWhileTheFileIsRead(t *testing.T) {
	t.Parallel()
	o := serverOptions(t, "")
	o.Config.ShutdownTimeout = time.Second
	reads, goOn := make(chan struct{}), make(chan struct{})
	o.Load = func() (*config.Config, error) {
		close(reads)
		<-goOn
		return serverConfig(t, "rules: [{name: other, key: [ip], limits: [2/1h]}]"), nil
	}
	i := startServer(t, o)
	reloaded := make(chan error, 1)
	go func() { reloaded <- i.Reload() }()
	<-reads
	began := time.Now()
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > time.Second+component.LastDrain+busyMachine {
		t.Errorf("with a shutdown_timeout of 1s, the stop takes %v", d)
	}
	close(goOn)
	if err := <-reloaded; !errors.Is(err, component.ErrStopping) {
		t.Errorf("the reload says %v", err)
	}
	if name := i.config.Load().Rules[0].Name; name != "client" {
		t.Errorf("the rule %s is in force", name)
	}
}

// TestRunEndsWhileTheFileIsRead covers a process at SIGTERM in the same way.
func TestRunEndsWhileTheFileIsRead(t *testing.T) {
	t.Setenv("GOGC", "100") // With GOGC set, Run does not change the garbage collector of the test process.
	t.Setenv("GOMEMLIMIT", "1GiB")
	o := serverOptions(t, "")
	o.Config.ShutdownTimeout = time.Second
	hangup, reads, goOn := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	defer close(goOn)
	o.Hangup = hangup
	o.Load = func() (*config.Config, error) {
		close(reads)
		<-goOn
		return o.Config, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	hangup <- os.Interrupt
	<-reads
	cancel()
	began := time.Now()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > time.Second+component.LastDrain+busyMachine {
		t.Errorf("with a shutdown_timeout of 1s, the end takes %v", d)
	}
}

// follows is what sources of objects and of domains have in common.
type follows func(ctx context.Context)

// takesAll is a Receiver that takes everything.
type takesAll struct{ failed chan struct{} }

func (takesAll) Changed(source.Change) {}
func (takesAll) Reached(time.Time)     {}
func (t takesAll) Failed(error) {
	select {
	case t.failed <- struct{}{}:
	default:
	}
}

// everySource opens each kind of source at a server that never answers.
func everySource(t *testing.T) map[string]follows {
	t.Helper()
	at := silentServer(t)
	all := map[string]follows{}
	add := func(name string, s source.Source, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all[name] = func(ctx context.Context) {
			s.Follow(ctx, takesAll{})
			if err := s.Close(); err != nil {
				t.Errorf("%s: Close says %v", name, err)
			}
		}
	}
	h, err := sourcehttp.Open(sourcehttp.Config{URL: "http://" + at, Interval: time.Second, Timeout: time.Minute})
	add("http", h, err)
	h, err = sourcehttp.Open(sourcehttp.Config{URL: "https://" + at, Interval: time.Second, Timeout: time.Minute, TLS: &tls.Config{}})
	add("https", h, err)
	e, err := etcd.Open(etcd.Config{Endpoints: []string{"http://" + at}, Prefix: "/p/"})
	add("etcd", e, err)
	p, err := postgres.Open(postgres.Config{Hosts: []string{at}, Database: "a", User: "a", Schema: "headgate"})
	add("postgres", p, err)
	x, err := xds.New(xds.Config{Server: at, NodeID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	all["xds"] = func(ctx context.Context) {
		_ = x.Follow(ctx, func([]xds.Resource) error { return nil }, func(error) {})
	}
	f, err := folder.New(folder.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	all["folder"] = func(ctx context.Context) {
		_ = f.Follow(ctx, func([]guard.Domain) error { return nil }, func(error) {})
	}
	return all
}

// TestSourcesEndWithTheirContext: each kind of source ends with its context, also while its server does not answer.
func TestSourcesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 300 * time.Millisecond} {
		for name, follow := range everySource(t) { // A source has one follower.
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				began := time.Now()
				follow(ctx)
				if d := time.Since(began) - after; d > component.LastOfOne+busyMachine {
					t.Errorf("takes %v after the end of its context", d)
				}
			})
		}
	}
}
