package open_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/open"
	"github.com/headgate/headgate/internal/config"
)

// TestFiles: a file that cannot be used is named with its field, and its text is not shown.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, row := range []struct {
		name   string
		source config.HTTPSource
		want   string
	}{
		{"headers", config.HTTPSource{HeadersFile: write("good", "Authorization: Bearer secret\n\nX-A: b\n")}, ""},
		{"a line without a colon", config.HTTPSource{HeadersFile: write("bad", "X-A: b\nsecret\n")}, "source.http.headers_file: line 2"},
		{"no file", config.HTTPSource{HeadersFile: filepath.Join(folder, "none")}, "source.http.headers_file"},
		{"no certificate", config.HTTPSource{TLS: config.SourceTLS{CA: write("ca", "secret")}}, "source.http.tls.ca"},
		{"no pair", config.HTTPSource{TLS: config.SourceTLS{Cert: write("c", "secret"), Key: write("k", "secret")}}, "source.http.tls.cert"},
	} {
		source := row.source
		source.URL, source.Interval, source.Timeout = "https://localhost:1/", time.Second, time.Second
		from, err := open.Source(&config.Source{HTTP: &source})
		if row.want == "" {
			if err != nil || from.Close() != nil {
				t.Errorf("%s: got %v", row.name, err)
			}
			continue
		}
		if _, found := errors.AsType[*config.FileError](err); !found || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q", row.name, err, row.want)
		}
	}
}

// TestDefaults: the defaults of the configuration, whose prefix has no slash at its end, are valid for the clients.
func TestDefaults(t *testing.T) {
	for _, c := range []config.Source{
		{Etcd: &config.EtcdSource{Endpoints: []string{"http://127.0.0.1:1"}, Prefix: "/headgate/config"}},
		{Etcd: &config.EtcdSource{Endpoints: []string{"https://127.0.0.1:1"}, Prefix: "/" + strings.Repeat("p", 249)}},
		{Postgres: &config.PostgresSource{Hosts: []string{"127.0.0.1:1"}, Database: "d", User: "u", Schema: "headgate"}},
	} {
		if from, err := open.Source(&c); err != nil || from.Close() != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func ExampleSource() {
	from, err := open.Source(&config.Source{HTTP: &config.HTTPSource{
		URL: "https://config.example.com/headgate.yaml", Interval: 5 * time.Second, Timeout: 10 * time.Second,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from.Close())
	// Output: <nil>
}
