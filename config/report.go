package config

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/readfile"
	"github.com/headgate/headgate/report"
)

// leastKeysSecret is the shortest secret of hashes of keys, in bytes: 128 bits of hexadecimal digits.
const leastKeysSecret = 32

// maxSecretBytes bounds a file with a secret.
const maxSecretBytes = 4096

// ReportConfig says what a report.Report logs to log, as the section log has it. It
// reads the file of log.keys_secret_file; the error is then a *FileError.
func (c *Config) ReportConfig(log *slog.Logger) (report.Config, error) {
	decisions, ok := report.ParseDecisions(string(c.Log.Decisions))
	if !ok {
		return report.Config{}, fmt.Errorf("config: log.decisions %q is not known: write sampled, all or none", c.Log.Decisions)
	}
	keys, ok := report.ParseKeys(string(c.Log.Keys))
	if !ok {
		return report.Config{}, fmt.Errorf("config: log.keys %q is not known: write hash, plain or off", c.Log.Keys)
	}
	described := report.Config{Log: log, Decisions: decisions, Keys: keys}
	if c.Log.KeysSecretFile == "" {
		return described, nil
	}
	const field = "log.keys_secret_file"
	secret, err := readfile.Line(c.Log.KeysSecretFile, maxSecretBytes, "secret")
	if err != nil {
		return report.Config{}, &FileError{field, err}
	}
	if len(secret) < leastKeysSecret {
		return report.Config{}, &FileError{field, errors.New(c.Log.KeysSecretFile +
			" has fewer than 32 bytes, which can be guessed: write openssl rand -hex 32 into it")}
	}
	described.KeysSecret = []byte(secret)
	return described, nil
}
