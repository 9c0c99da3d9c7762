package acceptance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
)

const replayConfiguration = `version: 1
max_memory: 64MiB
rules:
  - {name: perip, key: [ip], algorithm: sliding_log, limits: ["20/m"]}
  - {name: bypath, key: [path], algorithm: sliding_window, limits: ["100/m"]}
`

// combinedLine is a line of the combined format, with a request line as it is.
func combinedLine(client string, at time.Time, request string) string {
	return client + " - - [" + at.Format("02/Jan/2006:15:04:05 -0700") + "] \"" + request + "\" 200 12 \"-\" \"-\"\n"
}

func marchNoon(second int) time.Time {
	return time.Date(2026, time.March, 1, 12, 0, second, 0, time.UTC)
}

// inFolder writes a file beside nothing else, and returns its path.
func inFolder(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplayStatuses: the exit status says whether the configuration is right, and whether the log was read as what it is.
func TestReplayStatuses(t *testing.T) {
	t.Parallel()
	var lines, half, zipped bytes.Buffer
	for i := range 200 {
		lines.WriteString(combinedLine("192.0.2.1", marchNoon(i), "GET /a HTTP/1.1"))
		half.WriteString(combinedLine("192.0.2.1", marchNoon(i), "GET /a HTTP/1.1") + "garbage \x1b[2J\n")
	}
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(bytes.Repeat(lines.Bytes(), 100))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	fine, mixed := inFolder(t, "access.log", lines.Bytes()), inFolder(t, "half.log", half.Bytes())
	cut := inFolder(t, "cut.log.gz", zipped.Bytes()[:zipped.Len()/2])
	rules, faulty := file(t, replayConfiguration), file(t, strings.Replace(replayConfiguration, "20/m", "20/x", 1))
	byHeader := file(t, strings.Replace(replayConfiguration, "[path]", "[header:X-Client-Id]", 1))
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--config", rules, fine}, 0, "200 requests"},
		{[]string{"--config", rules, fine, "--json"}, 0, `"requests": 200`},
		{[]string{"--config", rules, fine, "--suggest", "10%"}, 0, "Suggestions"},
		{[]string{"--config", rules, fine, "--against", rules}, 0, "0 keys change"},
		{[]string{"--config", rules, mixed}, 1, "200 of 400 lines are malformed"},
		{[]string{"--config", rules, cut}, 1, "cut or damaged"},
		{[]string{"--config", faulty, fine}, 2, ":4:"},
		{[]string{"--config", byHeader, fine}, 2, `rule "bypath" reads header:X-Client-Id, which no line of the log has`},
		{[]string{"--config", byHeader, fine, "--skip-unknown"}, 0, `rule "bypath": the log does not have header:X-Client-Id`},
		{[]string{"--config", rules, fine + "x"}, 2, "no such file"},
		{[]string{"--config", rules, fine, "--format", "csv"}, 2, `--format "csv" is unknown`},
		{[]string{"--config", rules, fine, "--field", "when=ts"}, 2, "--field"},
		{[]string{"--config", rules, fine, "--suggest", "200%"}, 2, "write a percentage"},
		{[]string{"--config", rules, fine, "--within-second", "apart"}, 2, "write spread or together"},
		{[]string{"--config", rules, fine, "--reorder", "0s"}, 2, "write 1s to 24h"},
		{[]string{"--config", rules, "-", "--suggest", "1%"}, 2, "name the file in place of -"},
		{[]string{"--config", rules, "/dev/stdin", "--suggest", "1%"}, 2, "not a regular file"},
		{[]string{"--config", rules, fine, "--refused", fine}, 2, "would overwrite LOG"},
		{[]string{"--config", rules, fine, "--html", rules}, 2, "would overwrite --config"},
		{[]string{"--config", rules, fine, "--html", fine + ".new", "--refused", fine + ".new"}, 2, "would overwrite --refused"},
		{[]string{"--config", rules, fine, "--refused", "-"}, 2, "standard output has the report"},
		{[]string{"--config", rules, fine}, 0, "200 requests"}, // The log is as before.
		{[]string{"--config", rules, "-", "-"}, 2, "more than once"},
		{[]string{"--config", rules}, 2, "no log is named"},
		{[]string{"--schema"}, 0, "Report of headgate replay"},
		{[]string{"--config", rules, fine, "--max-memory", "1KiB"}, 2, "--max-memory is 1KiB: use at least 64KiB"},
		{[]string{"--config", rules, mixed, "--format", "combined"}, 1, "--format combined may be the wrong format"},
	} {
		status, stdout, stderr := call(t, append([]string{"replay"}, c.args...)...)
		if status != c.status || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("headgate replay %v: status %d, want %d and %q in\n%s%s", c.args, status, c.status, c.says, stdout, stderr)
		}
	}
}

// hostileLog has what clients and broken servers can put into a log.
func hostileLog(witness string) []byte {
	var b bytes.Buffer
	for i, request := range []string{
		"GET /<script>document.title=1</script> HTTP/1.1", "GET /</title><script>document.title=1</script> HTTP/1.1",
		`GET /\x22><img src=` + witness + `/a> HTTP/1.1`, "GET /]]></svg><img/src=" + witness + "/b> HTTP/1.1",
		"GET /\x1b[2J\x1b]0;owned\x07 HTTP/1.1", "GET /a\x00b HTTP/1.1", "GET /\xff\xfe\x80 HTTP/1.1", "GET /\u202egnp HTTP/1.1",
		"GET /\u009b31m HTTP/1.1", "GET /\x7f HTTP/1.1", "<script> /x HTTP/1.1", "GET /%1b%5b2J HTTP/1.1", "GET /a%00b HTTP/1.1",
	} {
		for range 200 { // More than a limit.
			b.WriteString(combinedLine("192.0.2.1", marchNoon(i), request))
		}
	}
	for _, stamp := range []string{"01/Jan/9999:00:00:00 +0000", "01/Jan/1969:00:00:00 +0000", "<script>", "99/Foo/2026:99:99:99 +9999"} {
		fmt.Fprintf(&b, "192.0.2.1 - - [%s] \"GET / HTTP/1.1\" 200 12 \"-\" \"-\"\n", stamp)
	}
	b.WriteString("<script>document.title=1</script>\n<img src=" + witness + "/c>\n\x1b[2J\n\x00\x00\n" + strings.Repeat("A", 2<<20) + "\n")
	return b.Bytes()
}

// TestReplayHostileLog: whatever a log has, a terminal gets no control character, and a browser that opens the page runs nothing and
// requests nothing.
func TestReplayHostileLog(t *testing.T) {
	t.Parallel()
	var requested atomic.Int64
	witness := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requested.Add(1) }))
	defer witness.Close()
	page := filepath.Join(t.TempDir(), "report.html")
	log := inFolder(t, "<script>document.title=1;access.log", hostileLog(witness.URL))
	for _, form := range []string{"--reorder=5m", "--json"} {
		status, stdout, stderr := call(t, "replay", "--config", file(t, replayConfiguration), log, "--html", page, form)
		if status != 0 && status != 1 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		for i, r := range stdout + stderr {
			if unicode.IsControl(r) && r != '\n' || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) && form != "--json" {
				t.Errorf("%s: the output has %q after %.60q", form, r, (stdout + stderr)[max(0, i-60):i])
			}
		}
	}
	tab := browse(t)
	if err := chromedp.Do(tab, chromedp.Navigate("file://"+page)); err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(tab, chromedp.Evaluate[string](`JSON.stringify([document.scripts.length, document.images.length,
		document.querySelectorAll("a, link, iframe, object, embed, [src], [href], [onload], [onerror]").length,
		performance.getEntriesByType("resource").length, document.title.startsWith("/"), document.querySelectorAll("svg").length])`))
	if err != nil || got != "[0,0,0,0,true,1]" {
		t.Errorf("the browser finds %s (error %v)", got, err)
	}
	if n := requested.Load(); n != 0 {
		t.Errorf("the page requested %d resources", n)
	}
}

// TestReplayMemory bounds the memory of a replay of large logs.
func TestReplayMemory(t *testing.T) { replayMemory(t, 100<<20) }

// replayMemory replays logs of a size through standard input. The peak of the memory is at most max_memory and 300 MiB.
func replayMemory(t *testing.T, size int) {
	t.Helper()
	const bound = 64<<20 + 300<<20
	random := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("a", 1<<20-200)
	for _, c := range []struct {
		name string
		line func(i int) string
	}{
		{"many clients", func(i int) string {
			client := fmt.Sprintf("10.0.%d.%d", random.IntN(64), random.IntN(256))
			return combinedLine(client, marchNoon(i/1000-random.IntN(60)), fmt.Sprintf("GET /path/%d HTTP/1.1", random.IntN(1000)))
		}},
		{"each line a new key, in one second", func(i int) string {
			return combinedLine(fmt.Sprintf("%d.%d.%d.%d", 1+i>>24&63, i>>16&255, i>>8&255, i&255), marchNoon(0), fmt.Sprintf("GET /path/%d HTTP/1.1", i))
		}},
		{"lines of a MiB", func(i int) string {
			return combinedLine("192.0.2.1", marchNoon(i), fmt.Sprintf("GET /%d/%s HTTP/1.1", i, long[:i%2*len(long)]))
		}},
	} {
		command := exec.CommandContext(t.Context(), binary, "replay", "--config", file(t, replayConfiguration), "--json", "-")
		in, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var faults bytes.Buffer
		command.Stderr = &faults
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		err = writeLog(in, size, c.line)
		if err = errors.Join(err, command.Wait()); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, faults.String())
		}
		usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			t.Fatal("the system does not tell the memory of processes")
		}
		t.Logf("%s: %d MiB", c.name, usage.Maxrss>>10)
		if usage.Maxrss<<10 > bound {
			t.Errorf("%s: the replay took %d MiB, and may take %d", c.name, usage.Maxrss>>10, bound>>20)
		}
	}
}

// writeLog writes lines until they have a size.
func writeLog(to io.WriteCloser, size int, line func(i int) string) error {
	b := bufio.NewWriterSize(to, 1<<20)
	for i, written := 0, 0; written < size; i++ {
		n, err := b.WriteString(line(i))
		if err != nil {
			return errors.Join(err, to.Close())
		}
		written += n
	}
	return errors.Join(b.Flush(), to.Close())
}
