package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/store/memory"
)

// TestBodyFile: the body of a file is read with the guard's configuration, so that a reload takes a changed file. A file at fault is
// an error that names the field, the file and the line.
func TestBodyFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("c.yaml", "version: 1\nrules:\n  - {name: other, match: {path: /a}, key: [ip], limits: [1/s]}\n"+
		"  - {name: a, match: {path: /b}, key: [ip], limits: [\"1/s\"], on_exceed: {body_file: busy.json, content_type: application/json}}\n")
	body := func(text string) (string, error) {
		file := write("busy.json", text)
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(c.Files(), file) || !slices.Contains(filesNamedBy(path), file) {
			t.Fatalf("the files to watch are %q, want %s", c.Files(), file)
		}
		store, err := memory.New(c.StoreConfig())
		if err != nil {
			t.Fatal(err)
		}
		described, err := c.GuardConfig(store, nil)
		if err != nil {
			return "", err
		}
		if described.Rules[0].Exceed.Response != nil {
			t.Error("the rule without a body has one")
		}
		return string(described.Rules[1].Exceed.Response.AppendBody(nil, &refusal.Values{RetryAfter: 5})), nil
	}
	for text, want := range map[string]string{`{"wait": {retry_after}}`: `{"wait": 5}`, `{"again": {retry_after}}`: `{"again": 5}`} {
		if got, err := body(text); err != nil || got != want {
			t.Errorf("got %s (error %v), want %s", got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "is empty", "{\n\"a\": {retry_aftr}}": "busy.json:2: has the placeholder {retry_aftr}", "{": "is not JSON",
		strings.Repeat(" ", refusal.MaxBody+1): "use at most 65536",
	} {
		_, err := body(text)
		var at *FileError
		if !errors.As(err, &at) || at.Path != "rules[1].on_exceed.body_file" || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one of the field with %q", err, want)
		}
	}
}
