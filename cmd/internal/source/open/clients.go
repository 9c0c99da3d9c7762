package open

import (
	"crypto/tls"
	"strings"

	"github.com/headgate/headgate/cmd/internal/source/etcd"
	"github.com/headgate/headgate/cmd/internal/source/postgres"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/readfile"
)

// maxPassword bounds a file with a password, in bytes.
const maxPassword = 4096

// openEtcd opens a prefix of etcd.
func openEtcd(c *config.EtcdSource) (source.Source, error) {
	described := etcd.Config{Endpoints: c.Endpoints, Prefix: c.Prefix + "/", User: c.User}
	var err error
	if len(c.Endpoints) > 0 && strings.HasPrefix(c.Endpoints[0], "https:") {
		if described.TLS, err = Secure("source.etcd.tls", &c.TLS); err != nil {
			return nil, err
		}
	}
	if described.Password, err = Password("source.etcd.password_file", c.PasswordFile); err != nil {
		return nil, err
	}
	return etcd.Open(described)
}

// openPostgres opens the tables of a schema.
func openPostgres(c *config.PostgresSource) (source.Source, error) {
	described := postgres.Config{Hosts: c.Hosts, Database: c.Database, User: c.User, Schema: c.Schema}
	var secured *tls.Config
	var err error
	if c.UseTLS {
		if secured, err = Secure("source.postgres.tls", &c.TLS); err != nil {
			return nil, err
		}
	}
	described.TLS = secured
	if described.Password, err = Password("source.postgres.password_file", c.PasswordFile); err != nil {
		return nil, err
	}
	return postgres.Open(described)
}

// Password gives a function that reads a password, so that a changed one is used. It is nil without a file.
func Password(name, path string) (func() (string, error), error) {
	if path == "" {
		return nil, nil //nolint:nilnil // Without a file, there is no password.
	}
	read := func() (string, error) {
		text, err := readfile.Line(path, maxPassword, "password")
		if err != nil {
			return "", &config.FileError{Path: name, Err: err}
		}
		return text, nil
	}
	_, err := read()
	return read, err
}
