package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/report"
)

func TestReportConfig(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", strings.Repeat("s", 32)+"\n")
	write("short", "secret\n")
	for _, c := range []struct {
		log    string
		keys   report.Keys
		secret string
		fault  string
	}{
		{"{}", report.KeysHash, "", ""},
		{"{keys: plain}", report.KeysPlain, "", ""},
		{"{keys: off}", report.KeysOff, "", ""},
		{"{keys_secret_file: good}", report.KeysHash, strings.Repeat("s", 32), ""},
		{"{keys_secret_file: short}", 0, "", "has fewer than 32 bytes"},
		{"{keys_secret_file: none}", 0, "", "no such file"},
	} {
		write("headgate.yaml", "version: 1\nlog: "+c.log+"\nrules: []\n")
		loaded, err := Load(filepath.Join(folder, "headgate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := loaded.ReportConfig(nil)
		if c.fault != "" {
			bad := new(FileError)
			if !errors.As(err, &bad) || bad.Path != "log.keys_secret_file" || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v, want %q", c.log, err, c.fault)
			}
			continue
		}
		if err != nil || got.Keys != c.keys || string(got.KeysSecret) != c.secret {
			t.Errorf("%s: %+v, %v", c.log, got, err)
		}
	}
}
