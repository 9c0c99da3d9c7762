package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestReloadWithClientCA: a rule by mtls_subject that comes together with proxy.tls.client_ca is refused by a reload, and the error says
// that client_ca needs a restart. Without client_ca the error says nothing of a restart: a restart does not help.
func TestReloadWithClientCA(t *testing.T) {
	certificates := redis.NewCertificates(t)
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	o := options(t)
	o.Load = func() (*config.Config, error) { return config.Load(path) }
	write := func(rules, ca string) {
		t.Helper()
		text := fmt.Sprintf("version: 1\nmax_memory: 1MiB\nrules: [%s]\nadmin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n"+
			"proxy: {listen: '127.0.0.1:0', upstream: 'http://127.0.0.1:9', tls: {cert: %q, key: %q%s}}\n",
			rules, certificates.CertFile, certificates.KeyFile, ca)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const subjects = "{name: subjects, key: [mtls_subject], limits: [5/s]}"
	ca := fmt.Sprintf(", client_ca: %q", certificates.CAFile)
	write("", "")
	first, err := o.Load()
	if err != nil {
		t.Fatal(err)
	}
	o.Config = first
	i := start(t, o)
	write(subjects, ca)
	err = i.Reload()
	if _, found := errors.AsType[*guard.UnsuppliedError](err); !found || !strings.Contains(err.Error(), `rule "subjects" counts by mtls_subject`) ||
		!strings.Contains(err.Error(), "proxy.tls.client_ca changes only at a restart: restart headgate") {
		t.Errorf("with client_ca, the reload gives %v", err)
	}
	write(subjects, "")
	if err := i.Reload(); err == nil || strings.Contains(err.Error(), "restart headgate") {
		t.Errorf("without client_ca, the reload gives %v", err)
	}
	write("{name: client, key: [ip], limits: [5/s]}", ca)
	if err := i.Reload(); err != nil && !strings.Contains(err.Error(), "client_ca") {
		t.Errorf("client_ca alone gives %v", err)
	}
	write(subjects, ca)
	again, err := o.Load()
	if err != nil {
		t.Fatal(err)
	}
	o.Config = again
	start(t, o) // A restart has it.
}
