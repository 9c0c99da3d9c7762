package logs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

const plainLine = `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /%d HTTP/1.1" 200 12 "-" "-"`

// plainLines has numbered lines.
func plainLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, plainLine+"\n", i)
	}
	return b.Bytes()
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLineEnds: carriage returns, empty lines, a byte order mark and a last line without an end change no line.
func TestLineEnds(t *testing.T) {
	first, second := fmt.Sprintf(plainLine, 0), fmt.Sprintf(plainLine, 1)
	for _, text := range []string{
		first + "\n" + second + "\n", first + "\n" + second, first + "\r\n" + second + "\r\n", "\xef\xbb\xbf" + first + "\n\n\r\n" + second + "\n\n",
	} {
		r, err := logs.New(strings.NewReader(text), logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if counts, _ := read(t, r); counts != (kinds{logs.Request: 2}) {
			t.Errorf("%q has the lines %v", text, counts)
		}
	}
}

// TestLongLines: a line of 1 MiB is read, and a longer one is malformed, at any place in the file.
func TestLongLines(t *testing.T) {
	head, tail := `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /`, ` HTTP/1.1" 200 12 "-" "-"`
	long := func(size int) string { return head + strings.Repeat("x", size-len(head)-len(tail)) + tail + "\n" }
	short := fmt.Sprintf(plainLine, 1) + "\n"
	for _, c := range []struct {
		text      string
		want      kinds
		malformed int64
	}{
		{short + long(logs.MaxLine) + short, kinds{logs.Request: 3}, 0},
		{short + long(logs.MaxLine+1) + short, kinds{logs.Request: 2, logs.Malformed: 1}, 2},
		{short + long(5*logs.MaxLine) + short + long(3*logs.MaxLine), kinds{logs.Request: 2, logs.Malformed: 2}, 2},
		{short + strings.TrimSuffix(long(3*logs.MaxLine), "\n"), kinds{logs.Request: 1, logs.Malformed: 1}, 2},
	} {
		r, err := logs.New(strings.NewReader(c.text), logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if counts, malformed := read(t, r); counts != c.want || malformed != c.malformed {
			t.Errorf("%d bytes: %v, malformed line %d, want %v and %d", len(c.text), counts, malformed, c.want, c.malformed)
		}
	}
}

// TestCompressed: a file is found to be compressed by its content, several members are one log, and a cut file has its lines before the cut.
func TestCompressed(t *testing.T) {
	const n = 50_000
	whole := zipped(t, plainLines(n))
	path := filepath.Join(t.TempDir(), "access.log") // The name does not say that it is compressed.
	if err := os.WriteFile(path, append(bytes.Clone(whole), whole...), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := logs.Open(path, logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if counts, _ := read(t, r); counts != (kinds{logs.Request: 2 * n}) || r.Read() != r.Size() {
		t.Errorf("two members have %v, %d bytes of %d read", counts, r.Read(), r.Size())
	}
	broken := bytes.Clone(whole)
	broken[len(broken)/2] ^= 0xff
	for name, text := range map[string][]byte{"cut": whole[:len(whole)/2], "broken": broken, "without its sum": whole[:len(whole)-8]} {
		r, err := logs.New(bytes.NewReader(text), logs.Options{Name: "access.log.gz"})
		if err != nil {
			t.Fatal(err)
		}
		var l logs.Line
		lines := int64(0)
		for err = r.Next(&l); err == nil; err = r.Next(&l) {
			lines++
		}
		var cut *logs.CutError
		if !errors.As(err, &cut) || cut.Lines != lines || lines < n/4 || !strings.HasPrefix(err.Error(), "access.log.gz: ") {
			t.Errorf("%s: %d lines, then %v", name, lines, err)
		}
	}
}

// TestBombTakesNoMemory: a compressed file that is one line of 32 MiB, or empty lines, takes time and no memory.
func TestBombTakesNoMemory(t *testing.T) {
	for _, filler := range []string{"x", "\n"} {
		piece := bytes.Repeat([]byte(filler), 1<<20)
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(plainLines(1))
		for range 32 {
			_, _ = w.Write(piece)
		}
		_ = w.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := logs.New(&b, logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read(t, r)
		runtime.ReadMemStats(&after)
		const most = 8 << 20
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%q: %d bytes are allocated, want at most %d", filler, took, most)
		}
	}
}

// TestWideObjects: JSON lines with very many values keep no memory.
func TestWideObjects(t *testing.T) {
	var b bytes.Buffer
	for i := range 20 {
		b.WriteString(`{"ts":1772366402.5,"m":"GET","p":"/a","x":` + strings.Repeat("[", i) + strings.Repeat("0,", 100_000) + "0" +
			strings.Repeat("]", i) + "}\n")
		b.WriteString(`{"ts":1772366402.5,"m":"GET","p":"/a"}` + "\n")
	}
	r, err := logs.New(&b, logs.Options{Fields: []logs.Field{{Name: "time", Path: "ts"}, {Name: "method", Path: "m"}, {Name: "path", Path: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	counts, _ := read(t, r)
	if counts[logs.Request] < 20 {
		t.Errorf("the lines are %v", counts)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	const most = 32 << 20
	if m.HeapAlloc > most {
		t.Errorf("the reader keeps %d bytes, want at most %d", m.HeapAlloc, most)
	}
	runtime.KeepAlive(r)
}

// TestUnreadable: errors say what to do.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		text, want string
		o          logs.Options
	}{
		{"hello\nworld\n", "a.log: the first lines are of no known format: name it with --format (headgate, nginx, ", logs.Options{}},
		{"{}\n", "a.log: the format json needs the names of the fields: write --field time=NAME ", logs.Options{Format: "json"}},
		{"{}\n", `--format "iis" is unknown: write one of headgate, `, logs.Options{Format: "iis"}},
		{"\x1f\x8b", "a.log: unexpected EOF after 0 lines: the file is cut or damaged", logs.Options{}},
	} {
		c.o.Name = "a.log"
		if _, err := logs.New(strings.NewReader(c.text), c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	r, err := logs.New(strings.NewReader(""), logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var l logs.Line
	if err := r.Next(&l); !errors.Is(err, io.EOF) {
		t.Errorf("an empty log: %v", err)
	}
}

// TestFields reads --field.
func TestFields(t *testing.T) {
	for text, want := range map[string]string{
		"time=ts": "", "header:x-client-id=h": "", "duration_ms=a.b": "", "jwt:sub=s": "", "time": "write NAME=PATH", "=x": "write NAME=PATH",
		"when=ts": "the log has no value when",
	} {
		f, err := logs.ParseField(text)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if text == "header:x-client-id=h" && f.Name != client {
			t.Errorf("the field is %v", f)
		}
	}
}

// TestTimeIs: the time of a combined line with a duration is the arrival, or the end.
func TestTimeIs(t *testing.T) {
	line := fmt.Sprintf(plainLine, 1) + " D=2000000\n"
	for is, want := range map[logs.TimeIs]string{logs.TimeIsUsual: "12:00:00", logs.TimeIsArrival: "12:00:00", logs.TimeIsEnd: "11:59:58"} {
		r, err := logs.New(strings.NewReader(line), logs.Options{TimeIs: is})
		if err != nil {
			t.Fatal(err)
		}
		var l logs.Line
		if err := r.Next(&l); err != nil || l.Arrival.Time().Format("15:04:05") != want {
			t.Errorf("%v: the arrival is %v: %v", is, l.Arrival.Time(), err)
		}
	}
}

// TestUnlogged: a part that no line has is named, and one that other lines have is absent.
func TestUnlogged(t *testing.T) {
	text := fmt.Sprintf(plainLine, 1) + "\n" + fmt.Sprintf(plainLine, 2) + " host=a header:X-Client-Id=me\n"
	r, err := logs.New(strings.NewReader(text), logs.Options{Parts: []string{client, "jwt:sub", "header:User-Agent"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Unlogged()); got != "[user_ip region jwt:sub]" {
		t.Errorf("the log lacks %s", got)
	}
	var l logs.Line
	for _, want := range []logs.Form{logs.Absent, logs.Plain} {
		if err := r.Next(&l); err != nil || l.Parts[0].Form != want || l.Parts[1].Form != logs.Unlogged || l.Parts[2].Form != logs.Absent {
			t.Errorf("line %d has %v: %v", l.Number, l.Parts, err)
		}
	}
}
