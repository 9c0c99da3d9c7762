package open_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/open"
	schema "github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// patience bounds the wait for a source, on a busy machine too.
const patience = time.Minute

// firstNews gets what a source says first: nil, or why it failed.
type firstNews chan error

func (f firstNews) Changed(source.Change) { f.say(nil) }
func (f firstNews) Reached(time.Time)     { f.say(nil) }
func (f firstNews) Failed(err error)      { f.say(err) }

func (f firstNews) say(err error) {
	select {
	case f <- err:
	default:
	}
}

// first follows a source until its first news.
func first(t *testing.T, c *config.Source) error {
	t.Helper()
	from, err := open.Source(c)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	news, ended := make(firstNews, 1), make(chan struct{})
	go func() { from.Follow(ctx, news); close(ended) }()
	select {
	case err = <-news:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	<-ended
	return err
}

// securedSource is a real server that accepts only clients with a certificate, and its configuration.
type securedSource struct {
	field  string
	config func(config.SourceTLS) *config.Source
}

// securedSources starts the servers with one certificate for 127.0.0.1 and localhost.
func securedSources(t *testing.T, c *redis.Certificates) []securedSource {
	t.Helper()
	keys := etcd.StartTLS(t, c.Client, c.CAFile, c.CertFile, c.KeyFile)
	tables := postgres.StartTLS(t, c.CAFile, c.CertFile, c.KeyFile)
	tables.SQL(schema.Schema("headgate"))
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(tables.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	document := serveSecured(t, c)
	return []securedSource{
		{"source.etcd.tls", func(s config.SourceTLS) *config.Source {
			return &config.Source{Etcd: &config.EtcdSource{Endpoints: []string{"https://" + keys.Addr}, Prefix: "/p", TLS: s}}
		}},
		{"source.postgres.tls", func(s config.SourceTLS) *config.Source {
			return &config.Source{Postgres: &config.PostgresSource{
				Hosts: []string{tables.Addr}, Database: postgres.Database, User: postgres.User,
				Schema: "headgate", PasswordFile: password, UseTLS: true, TLS: s,
			}}
		}},
		{"source.http.tls", func(s config.SourceTLS) *config.Source {
			return &config.Source{HTTP: &config.HTTPSource{URL: document, Interval: time.Hour, Timeout: patience, TLS: s}}
		}},
	}
}

// serveSecured serves an empty document, and gives its URL.
func serveSecured(t *testing.T, c *redis.Certificates) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"customers": {}}`) }))
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: c.Client.Certificates, ClientCAs: c.Client.RootCAs,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // Failed handshakes are expected.
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// TestTLS: real servers that demand a certificate are followed with the configured files. With a file that does not fit,
// the error names its field.
func TestTLS(t *testing.T) {
	t.Parallel()
	good, stranger := redis.NewCertificates(t), redis.NewCertificates(t)
	whole := config.SourceTLS{CA: good.CAFile, Cert: good.CertFile, Key: good.KeyFile}
	for _, s := range securedSources(t, good) {
		for _, row := range []struct {
			name   string
			change func(*config.SourceTLS)
			want   string
		}{
			{"the right files", func(*config.SourceTLS) {}, ""},
			{"a wrong CA", func(c *config.SourceTLS) { c.CA = stranger.CAFile }, s.field + ".ca "},
			{"the authorities of the system", func(c *config.SourceTLS) { c.CA = "" }, s.field + ".ca "},
			{"a wrong name", func(c *config.SourceTLS) { c.ServerName = "other.example" }, s.field + ".server_name "},
			{"no client certificate", func(c *config.SourceTLS) { c.Cert, c.Key = "", "" }, s.field + ".cert and " + s.field + ".key "},
			{
				"a client certificate of another authority",
				func(c *config.SourceTLS) { c.Cert, c.Key = stranger.CertFile, stranger.KeyFile },
				s.field + ".cert and " + s.field + ".key ",
			},
		} {
			files := whole
			row.change(&files)
			switch err := first(t, s.config(files)); {
			case row.want == "" && err != nil:
				t.Errorf("%s: %s: %v", s.field, row.name, err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("%s: %s: got %v, want an error with %q", s.field, row.name, err, row.want)
			}
		}
	}
}
