package output_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// TestCheckFiles: no output is an input or another output, by whatever path, and the check changes no file.
func TestCheckFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, err := range []error{
		os.WriteFile(at("access.log"), []byte("a line\n"), 0o600), os.Mkdir(at("sub"), 0o700), os.Symlink(folder, at("other")),
		os.Symlink("access.log", at("link")), os.Link(at("access.log"), at("hard")), os.Symlink("../new", at("sub/dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		refused, page string
		says          string // "" if the files are fine
	}{
		{at("refused"), at("page"), ""},
		{"", "", ""},
		{"/dev/null", "/dev/null", ""},
		{at("access.log"), "", "would overwrite LOG"},
		{"", at("access.log"), "would overwrite LOG"},
		{at("link"), "", "would overwrite LOG"},
		{at("hard"), "", "would overwrite LOG"},
		{at("other/access.log"), "", "would overwrite LOG"},
		{at("new"), at("new"), "--html " + at("new") + " would overwrite --refused"},
		{at("new"), at("sub/../new"), "would overwrite --refused"},
		{at("new"), at("other/new"), "would overwrite --refused"},
		{at("sub/dangling"), at("new"), "would overwrite --refused"},
		{"-", "", "--refused is -"},
		{"", "-", "--html is -"},
	} {
		err := output.CheckFiles([]output.File{{Flag: "--refused", Path: c.refused}, {Flag: "--html", Path: c.page}},
			[]output.File{{Flag: "LOG", Path: at("access.log")}, {Flag: "--config", Path: at("missing.yaml")}, {Flag: "LOG", Path: "-"}})
		if err == nil != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("--refused %q --html %q: %v, want %q", c.refused, c.page, err, c.says)
		}
	}
	if text, err := os.ReadFile(at("access.log")); err != nil || string(text) != "a line\n" {
		t.Errorf("the log is %q, %v", text, err)
	}
}

// TestCheckRegular: what is read several times is a regular file, or a link to one.
func TestCheckRegular(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	log, link := filepath.Join(folder, "access.log"), filepath.Join(folder, "link")
	for _, err := range []error{os.WriteFile(log, nil, 0o600), os.Symlink(log, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, fine := range map[string]bool{log: true, link: true, log + "x": true, "-": false, folder: false, "/dev/null": false} {
		if err := output.CheckRegular(output.File{Path: path}, "--suggest reads each log several times"); err == nil != fine {
			t.Errorf("%s: %v", path, err)
		}
	}
}
