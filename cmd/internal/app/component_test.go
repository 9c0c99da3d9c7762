package app

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// recorded is a component that records its calls and fails on request.
type recorded struct {
	component.Defaults

	name                       string
	did                        *[]string
	startFault, fault, unready error
}

func (r *recorded) note(what string) { *r.did = append(*r.did, what+" "+r.name) }

func (r *recorded) Start(context.Context) (func(), error) {
	r.note("start")
	return func() { r.note("begin") }, r.startFault
}

func (r *recorded) Reload(*config.Config) (component.Change, error) {
	r.note("prepare")
	return component.Change{Commit: func() { r.note("commit") }, Discard: func() { r.note("discard") }}, r.fault
}

func (r *recorded) Drain(context.Context) error {
	r.note("drain")
	return nil
}

func (r *recorded) Ready() error { return r.unready }

// taken returns the calls that were recorded since its last call.
func taken(did *[]string) string {
	defer func() { *did = nil }()
	return strings.Join(*did, ", ")
}

// TestComponents checks the order of calls. Components start and reload in order and drain in
// reverse order. No component begins before all have started, and no component commits before
// all have prepared.
func TestComponents(t *testing.T) {
	var did []string
	a, b := &recorded{name: "a", did: &did}, &recorded{name: "b", did: &did}
	o := options(t)
	i := newInstance(o)
	if err := i.makeComponents(); err != nil {
		t.Fatal(err)
	}
	i.components = append(i.components, a, b)
	b.unready = errors.New("b is loading")
	if err := i.ready(); err == nil || err.Error() != "the proxy is starting" {
		t.Errorf("before the start, ready returns %v", err)
	}
	if err := i.startComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := taken(&did), "start a, start b, begin a, begin b"; got != want {
		t.Errorf("the calls of the start are %q, want %q", got, want)
	}
	if status, text := get(t, i.Addresses().Health+"/readyz"); status != http.StatusServiceUnavailable || text != "b is loading\n" {
		t.Errorf("readyz answers %d %q", status, text)
	}
	if err := component.Reload(i.components, o.Config); err != nil {
		t.Error(err)
	}
	if got, want := taken(&did), "prepare a, prepare b, commit a, commit b"; got != want {
		t.Errorf("the calls of the reload are %q, want %q", got, want)
	}
	b.fault = errors.New("no")
	if err := component.Reload(i.components, o.Config); !errors.Is(err, b.fault) {
		t.Errorf("the refused reload ends with %v", err)
	}
	if got, want := taken(&did), "prepare a, prepare b, discard a"; got != want {
		t.Errorf("the calls of the refused reload are %q, want %q", got, want)
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if got, want := taken(&did), "drain b, drain a"; got != want {
		t.Errorf("the calls of the end are %q, want %q", got, want)
	}
}

// TestStartOfComponentsFails checks that no component begins when the last component fails to
// start. All of them are drained, so that their sockets are free again.
func TestStartOfComponentsFails(t *testing.T) {
	var did []string
	i := newInstance(options(t))
	if err := i.makeComponents(); err != nil {
		t.Fatal(err)
	}
	last := &recorded{name: "last", did: &did, startFault: errors.New("no")}
	i.components = append(i.components, last)
	if err := i.startComponents(t.Context()); !errors.Is(err, last.startFault) {
		t.Fatalf("the start ends with %v", err)
	}
	at := i.Status().Listen
	if err := i.drainComponents(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := taken(&did), "start last, drain last"; got != want {
		t.Errorf("the calls are %q, want %q", got, want)
	}
	for _, address := range []string{at.Proxy, at.Admin, at.Health} {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s takes connections", address)
		}
	}
}

// secured starts a service with TLS, and writes the certificate files for a proxy with TLS.
func secured(t *testing.T, folder string) (service *httptest.Server) {
	t.Helper()
	service = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "first") }))
	t.Cleanup(service.Close)
	key, err := x509.MarshalPKCS8PrivateKey(service.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"a.crt": {Type: "CERTIFICATE", Bytes: service.Certificate().Raw}, "a.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return service
}

// answered is what a client sees of the proxy.
type answered struct {
	Status      int
	Body        string
	Style       bool // Whether the rate limit headers have the draft style.
	Certificate string
}

// request sends a request over a new connection.
func request(t *testing.T, at, client string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/v1/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client-Id", client)
	resp, err := (&http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp.StatusCode, string(body), resp.Header.Get("RateLimit") != "", fmt.Sprintf("%x", sha256.Sum256(resp.TLS.PeerCertificates[0].Raw))}
}

// metricsAs requests the metrics with a Host field and returns the status.
func metricsAs(t *testing.T, i *Instance, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Addresses().Health+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// lasting returns the fields of the status that a refused reload must not change.
func lasting(i *Instance) admin.Status {
	s := i.Status()
	s.UptimeSeconds, s.Reload, s.Requests = 0, admin.ReloadStatus{}, admin.RequestStatus{}
	return s
}

// TestRefusedByTheLastComponent checks that a reload changes no component when the last one
// refuses, whatever the others have prepared. Logs are rotated in any case. Without the
// refusal, the same reload changes all components.
func TestRefusedByTheLastComponent(t *testing.T) {
	folder := t.TempDir()
	first := secured(t, folder)
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "second") }))
	defer second.Close()
	access := filepath.Join(folder, "access.log")
	path := filepath.Join(folder, "headgate.yaml")
	o := options(t)
	o.Load, o.Level = func() (*config.Config, error) { return config.Load(path) }, new(slog.LevelVar)
	write := func(rule, rest, upstream string) {
		t.Helper()
		text := fmt.Sprintf("version: 1\nmax_memory: 1MiB\nrules: [{name: client, key: [header:X-Client-Id], limits: [%s]}]\n%s\n"+
			"proxy: {listen: '127.0.0.1:0', tls: {cert: a.crt, key: a.key}, %s}\n", rule, rest, upstream)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2/1h", "admin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\nlog: {access: json, access_file: access.log}\n"+
		"fair_share: {client: header:X-Client-Id, capacity: 9, cycle: 1h}", "upstream: '"+first.URL+"', upstream_tls: {ca: a.crt}")
	i := start(t, o)
	at := i.Addresses().Proxy
	before := request(t, at, "a")
	if before.Status != http.StatusOK || before.Body != "first" || !before.Style {
		t.Fatalf("before the reload the answer is %+v", before)
	}
	write("9/1h", "admin: {listen: '127.0.0.1:0', health: '127.0.0.1:0', hosts: [metrics.example.com]}\n"+
		"log: {access: json, access_file: access.log, level: debug}\nfair_share: {client: header:X-Client-Id, capacity: 90, cycle: 1h}",
		"header_style: none, upstream: '"+second.URL+"'")
	var did []string
	last := &recorded{name: "last", did: &did, fault: errors.New("the last component refuses")}
	i.components = append(i.components, last)
	eventually(t, "the first line of the access log", func() bool { return lines(access) == 1 })
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	was := lasting(i)
	if err := i.Reload(); !errors.Is(err, last.fault) {
		t.Fatalf("the reload ends with %v", err)
	}
	if now := lasting(i); !reflect.DeepEqual(now, was) {
		t.Errorf("the status is\n%+v\nand was\n%+v", now, was)
	}
	if o.Level.Level() != slog.LevelInfo || metricsAs(t, i, "metrics.example.com") != http.StatusForbidden {
		t.Errorf("the log level is %v, or admin.hosts has changed", o.Level)
	}
	if now := request(t, at, "a"); now != before {
		t.Errorf("the second answer is %+v, and the first was %+v", now, before)
	}
	if now := request(t, at, "a"); now.Status != http.StatusTooManyRequests {
		t.Errorf("the third request is answered with %d: the counts have changed", now.Status)
	}
	eventually(t, "the lines in the new access log", func() bool { return lines(access) == 2 && lines(access+".1") == 1 })
	if s := i.Status().Reload; s.Failed != 1 || s.Succeeded != 0 || len(s.Failures) != 1 || s.Failures[0].Part != partConfiguration {
		t.Errorf("the reload status is %+v", s)
	}
	last.fault = nil
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	if now := request(t, at, "a"); now.Status != http.StatusOK || now.Body != "second" || now.Style || now.Certificate != before.Certificate {
		t.Errorf("after the reload the answer is %+v", now)
	}
	if now := i.Status(); now.FairShare.Capacity != 90 || !slices.Equal(now.Rules[0].Limits, []string{"9/1h"}) || now.Rules[0].Allowed != 3 ||
		o.Level.Level() != slog.LevelDebug || metricsAs(t, i, "metrics.example.com") != http.StatusOK {
		t.Errorf("after the reload the status is %+v", now)
	}
}

// TestWithoutProxy checks that an instance without an upstream starts, shows its status,
// reloads and drains.
func TestWithoutProxy(t *testing.T) {
	var log logs.Text
	o := options(t)
	o.Log = log.Logger()
	value := func(rule, proxy string) *config.Config {
		c, err := config.Parse("test.yaml", fmt.Appendf(nil, "version: 1\nmax_memory: 1MiB\nrules: [{name: %s, key: [ip], limits: [2/1h]}]\n"+
			"%s\nadmin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n", rule, proxy))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := value("second", "")
	o.Config, o.Load = value("first", ""), func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := get(t, i.Addresses().Health+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz answers %d %s", status, text)
	}
	if _, text := get(t, i.Addresses().Health+"/metrics"); !strings.Contains(text, "headgate_build_info") || strings.Contains(text, "proxy_connections") {
		t.Errorf("the metrics are %s", text)
	}
	if err := i.Reload(); err != nil {
		t.Error(err)
	}
	if s := i.Status(); s.Rules[0].Name != "second" || s.Listen.Proxy != "" || s.Upstream != "" {
		t.Errorf("the status is %+v", s)
	}
	next = value("third", "proxy: {listen: '127.0.0.1:0', upstream: 'http://127.0.0.1:9'}")
	log.Take()
	if err := i.Reload(); err != nil {
		t.Error(err)
	}
	if text := log.Take(); !strings.Contains(text, "setting=proxy.upstream") || i.Status().Rules[0].Name != "third" {
		t.Errorf("the log does not say that the proxy needs a restart: %s", text)
	}
	at := i.Addresses().Admin
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("the admin listener is open after Stop")
	}
}
