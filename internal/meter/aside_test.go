package meter

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// halfFile is a disk that takes ten bytes of each write.
type halfFile struct{ *os.File }

func (f halfFile) Write(text []byte) (int, error) {
	n, _ := f.File.Write(text[:10])
	return n, errFull
}

// TestTornAside: a write fails in the middle of a line, and another one was torn by a kill. Each record set aside is a line of its own.
func TestTornAside(t *testing.T) {
	name := filepath.Join(t.TempDir(), "set-aside.jsonl")
	all := recordsOf(4)
	if err := appendAside(name, &all[0]); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAside(halfFile{f}, info.Size(), &all[1]); !errors.Is(err, errFull) {
		t.Errorf("a full disk gave %v", err)
	}
	if err := appendAside(name, &all[1]); err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("{torn")
	for i := range all[2:] {
		err = errors.Join(err, appendAside(name, &all[2+i]))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(recordsText(4), "\n")
	if want := lines[0] + lines[1] + "{torn\n" + lines[2] + lines[3]; string(text) != want {
		t.Errorf("the file has\n%s\nwant\n%s", text, want)
	}
}
