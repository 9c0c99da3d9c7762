package meter

import (
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFaultyFolders: the start names the field and the folder, and says what to do.
func TestFaultyFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(file, "inside")
	for _, c := range []struct{ journal, lines, want string }{
		{inside, t.TempDir(), "the folder of the journal (metering.journal) " + inside + ": "},
		{t.TempDir(), inside, "the folder of the files (metering.lines.folder) " + inside + ": "},
	} {
		l, err := NewLines(LinesConfig{Folder: c.lines, Instance: "a"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(Config{Instance: "a", Folder: c.journal, Outputs: []Output{l}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "name a folder, or remove the file") {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestFolderLost: the folder of the files is replaced by a file while the output runs.
func TestFolderLost(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "usage")
	l := newLines(t, LinesConfig{Folder: folder})
	if err := errors.Join(os.Remove(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Deliver(t.Context(), recordsOf(1)); err == nil || !strings.Contains(err.Error(), "(metering.lines.folder) "+folder) {
		t.Errorf("got %v", err)
	}
}

func TestAdviseFolder(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EACCES: "let the user of the process write there, or name another folder",
		syscall.EROFS:  "name a folder on a writable file system",
		syscall.ENOENT: "make the folder, or name another one",
		syscall.ENOSPC: "free space on its disk",
		syscall.EIO:    "open /j/x: " + syscall.EIO.Error(),
	} {
		err := adviseFolder(journalFolder, "/j", &fs.PathError{Op: "open", Path: "/j/x", Err: cause})
		if !errors.Is(err, cause) || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), "(metering.journal) /j: ") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := errors.New("another"); !errors.Is(adviseFolder(journalFolder, "/j", err), err) || adviseFolder(linesFolder, "/j", nil) != nil {
		t.Error("an error of no file was changed")
	}
}

// TestFaultyEndpoint: the error names the address without its query, and the field to correct.
func TestFaultyEndpoint(t *testing.T) {
	answers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(answers(200))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // For the handshake that fails.
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(answers(200))
	defer plain.Close()
	missing := httptest.NewServer(answers(404))
	defer missing.Close()
	closed := httptest.NewServer(answers(401))
	defer closed.Close()
	for _, c := range []struct{ url, token, want string }{
		{gone.URL, "", "start the endpoint, or correct the address (metering.events.url)"},
		{secure.URL, "", "name the authorities of the endpoint (metering.events.ca)"},
		{strings.Replace(plain.URL, "http:", "https:", 1), "", "the endpoint has no TLS: correct the address (metering.events.url)"},
		{missing.URL, "", "answers with status 404: nothing takes events at this address: correct it (metering.events.url)"},
		{closed.URL, "", "answers with status 401: check the token (metering.events.token_file)"},
		{plain.URL, "/nonexistent/token", "the token (metering.events.token_file): "},
	} {
		out, err := NewCloudEvents(EventsConfig{URL: c.url + "/events?key=secret", TokenFile: c.token})
		if err != nil {
			t.Fatal(err)
		}
		_, err = out.Deliver(t.Context(), recordsOf(1))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") ||
			c.token == "" && !strings.HasPrefix(err.Error(), c.url+"/events") {
			t.Errorf("%s: got %v, want %s", c.url, err, c.want)
		}
		_ = out.Close()
	}
}
