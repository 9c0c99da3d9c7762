package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestServerDocument runs the commands of docs/server.md under "Decisions for any program", and compares their
// output with the page.
func TestServerDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "server.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Decisions for any program\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, settings, _ := strings.Cut(section, "```yaml\n")
	settings, _, _ = strings.Cut(settings, "```\n")
	settings = strings.NewReplacer("127.0.0.1:8081", "127.0.0.1:0", "127.0.0.1:8080", "127.0.0.1:0").Replace(settings)
	i := launchServer(t, file(t, settings+"admin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n"))
	ran := 0
	for _, block := range strings.Split(section, "```\n$ ")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for command := range strings.SplitSeq(block, "\n$ ") {
			line, want, _ := strings.Cut(command, "\n")
			line = strings.ReplaceAll(line, "127.0.0.1:8080", i.HTTP)
			got, err := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(line, "curl ", "curl -sS ", 1)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, got)
			}
			if seen := plain(string(got)); !strings.HasPrefix(seen, plain(want)) {
				t.Errorf("%s\ngot  %s\nwant %s", line, seen, plain(want))
			}
			ran++
		}
	}
	if ran != 6 {
		t.Errorf("%d commands were found, want 6", ran)
	}
}

// plain replaces the numbers that depend on the time.
func plain(output string) string {
	output = strings.ReplaceAll(strings.TrimSpace(output), "\r\n", "\n")
	return regexp.MustCompile(`("(?:reset|retry)_after":|;t=)[0-9.]+`).ReplaceAllString(output, "${1}N")
}
