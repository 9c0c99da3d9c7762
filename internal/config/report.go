package config

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/readfile"
)

// leastKeysSecret is the shortest secret for hashing keys, in bytes: 128 bits as hexadecimal digits.
const leastKeysSecret = 32

const keysSecretField = "log.keys_secret_file"

// maxSecretBytes bounds the size of a secret's file.
const maxSecretBytes = 4096

// ReportConfig returns the settings of the section log for a report.Report that logs to log. It
// reads the file of log.keys_secret_file. An error about that file is a *FileError.
func (c *Config) ReportConfig(log *slog.Logger) (report.Config, error) {
	decisions, ok := report.ParseDecisions(string(c.Log.Decisions))
	if !ok {
		return report.Config{}, fmt.Errorf("config: log.decisions %q is unknown: write sampled, all or none", c.Log.Decisions)
	}
	keys, ok := report.ParseKeys(string(c.Log.Keys))
	if !ok && c.Log.Keys != KeysByReader { // In logs, by_reader is the zero value, KeysHash.
		return report.Config{}, fmt.Errorf("config: log.keys %q is unknown: write by_reader, hash, plain or off", c.Log.Keys)
	}
	described := report.Config{Log: log, Decisions: decisions, Keys: keys, Instance: c.Instance}
	if c.Log.KeysSecretFile == "" {
		return described, nil
	}
	secret, err := readfile.Line(c.Log.KeysSecretFile, maxSecretBytes, "secret")
	if err != nil {
		return report.Config{}, &FileError{keysSecretField, err}
	}
	if len(secret) < leastKeysSecret {
		return report.Config{}, &FileError{keysSecretField, errors.New(c.Log.KeysSecretFile +
			" has fewer than 32 bytes, which is easy to guess: fill the file with openssl rand -hex 32")}
	}
	described.KeysSecret = []byte(secret)
	return described, nil
}

// writeHashes says whether hashes of keys can be compared between instances. A configuration without a shared store is that of one
// instance.
func (c *Config) writeHashes(b *strings.Builder) {
	if c.Shared == nil || c.Log.KeysSecretFile != "" || c.Log.Keys != KeysHash && c.Log.Keys != KeysByReader {
		return
	}
	b.WriteString("logs hash keys with a secret of each start, so hashes differ between instances: name one secret for all with " +
		"log.keys_secret_file\n")
}
