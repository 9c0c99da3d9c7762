package documents

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tour runs the commands of the README in its own folder, on free ports instead of the README's
// ports. The files that it saves have these ports too.
type tour struct {
	dir     string
	replace *strings.Replacer // Replaces the README's addresses with the test's addresses.
	restore *strings.Replacer
	listens map[string]string // Maps an address of the README to the test's address.
}

// TestTour runs each command of the README's tour and compares the output with the README.
func TestTour(t *testing.T) {
	lines := linesOf(t, filepath.Join("..", "..", "..", "README.md"))
	tr := newTour(t)
	commands, compared := 0, 0
	for _, block := range fenced(lines) {
		if slices.Contains(block, "  - name: product") {
			tr.write(t, "headgate.yaml", block)
			continue
		}
		if slices.ContainsFunc(block, func(line string) bool { return strings.HasPrefix(line, "server: ") }) {
			tr.write(t, "server.yaml", block)
			continue
		}
		if !strings.HasPrefix(block[0], "$ ") {
			continue
		}
		for from := 0; from < len(block); commands++ {
			to := from + 1
			for to < len(block) && !strings.HasPrefix(block[to], "$ ") {
				to++
			}
			tr.run(t, strings.TrimPrefix(block[from], "$ "), block[from+1:to])
			if to > from+1 {
				compared++
			}
			from = to
		}
	}
	if commands != 12 || compared != 8 {
		t.Errorf("the tour has %d commands, and %d commands have output: want 12 and 8", commands, compared)
	}
}

func newTour(t *testing.T) *tour {
	t.Helper()
	tr := &tour{dir: t.TempDir(), listens: map[string]string{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(tr.dir, "bin", "headgate"), "github.com/headgate/headgate/cmd/headgate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var to, back []string
	for _, port := range []string{"8080", "9000", "9902", "9903", "8090", "8091", "8092", "9912", "9913"} {
		readme, free := "127.0.0.1:"+port, freeAddress(t)
		to, back = append(to, readme, free), append(back, free, readme)
		tr.listens[readme] = free
	}
	for _, argument := range []string{" 9000 &", " -p 8092 "} {
		port := regexp.MustCompile(`[0-9]+`).FindString(argument)
		to = append(to, argument, strings.Replace(argument, port, strings.TrimPrefix(tr.listens["127.0.0.1:"+port], "127.0.0.1:"), 1))
	}
	tr.replace, tr.restore = strings.NewReplacer(to...), strings.NewReplacer(back...)
	return tr
}

// freeAddress returns a free address of loopback.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// write saves a block of the README as a file, with the test's addresses.
func (tr *tour) write(t *testing.T, name string, block []string) {
	t.Helper()
	text := tr.replace.Replace(strings.Join(block, "\n") + "\n")
	if err := os.WriteFile(filepath.Join(tr.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (tr *tour) run(t *testing.T, command string, want []string) {
	t.Helper()
	background, ends := strings.CutSuffix(tr.replace.Replace(command), " &")
	if ends {
		tr.start(t, background)
		return
	}
	c := tr.command(t.Context(), background)
	out, err := c.CombinedOutput()
	if err != nil && !strings.Contains(command, "typo") {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	got := steady(strings.Split(strings.TrimRight(tr.restore.Replace(string(out)), "\n"), "\n"))
	if want = steady(want); len(want) > 0 && !shows(want, got) {
		t.Errorf("$ %s\nprints\n%s\nbut the README shows\n%s", command, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (tr *tour) command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", line)
	c.Dir, c.Env = tr.dir, os.Environ()
	if !strings.Contains(line, "server.yaml") { // That file has addresses of admin and health. The others have the defaults.
		c.Env = append(c.Env, "HEADGATE_ADMIN_LISTEN="+tr.listens["127.0.0.1:9902"], "HEADGATE_ADMIN_HEALTH="+tr.listens["127.0.0.1:9903"])
	}
	return c
}

// start runs a command until the test ends, and returns when it listens.
func (tr *tour) start(t *testing.T, line string) {
	t.Helper()
	c := tr.command(t.Context(), "exec "+line)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	address := tr.listens["127.0.0.1:8080"]
	switch {
	case strings.Contains(line, "http.server"):
		address = tr.listens["127.0.0.1:9000"]
	case strings.Contains(line, "server.yaml"):
		address = tr.listens["127.0.0.1:8092"]
	}
	look, end := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("%s does not listen on %s after a minute", line, address)
		}
	}
}

// wait matches the wait of a refused client: a minute minus the time since the first request.
var wait = regexp.MustCompile(`(;t=|Retry-After: |retry in )([1-5][0-9]|60)\b`)

// steady replaces the values that differ from run to run.
func steady(lines []string) []string {
	same := make([]string, len(lines))
	for i, line := range lines {
		same[i] = wait.ReplaceAllString(strings.TrimRight(line, "\r"), "${1}60")
	}
	return same
}

// shows reports whether got matches want. In want, "..." matches any lines.
func shows(want, got []string) bool {
	for i, line := range want {
		if line == "..." {
			for from := range len(got) + 1 {
				if shows(want[i+1:], got[from:]) {
					return true
				}
			}
			return false
		}
		if len(got) == 0 || got[0] != line {
			return false
		}
		got = got[1:]
	}
	return len(got) == 0
}

// fenced returns the lines of each fenced block.
func fenced(lines []string) [][]string {
	var blocks [][]string
	inside := false
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "```"):
			if inside = !inside; inside {
				blocks = append(blocks, nil)
			}
		case inside:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		}
	}
	return blocks
}
