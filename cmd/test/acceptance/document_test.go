package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestServerDocument runs the commands of docs/server.md under "Decisions for any program", and compares their
// output with the page.
func TestServerDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "server.md"))
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

// plain replaces the numbers that depend on the time, and the names of decisions.
func plain(output string) string {
	output = strings.ReplaceAll(strings.TrimSpace(output), "\r\n", "\n")
	output = regexp.MustCompile(`"decision":"[^"]+"`).ReplaceAllString(output, `"decision":"N"`)
	return regexp.MustCompile(`("(?:reset|retry)_after":|;t=)[0-9.]+`).ReplaceAllString(output, "${1}N")
}

// TestSecurityDocument runs the command of docs/security.md, and compares its output with the page. Then it starts the server of
// the page with the printed digest, and makes a call with the printed token.
func TestSecurityDocument(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "2027-12-31", "2099-12-31") // The test outlives the date.
	digests := regexp.MustCompile("sha256:[0-9a-f]{64}")
	_, example, _ := strings.Cut(text, "```\n$ headgate ")
	example, _, _ = strings.Cut(example, "```")
	line, want, _ := strings.Cut(example, " > checkout.token\n")
	exit, token, printed := call(t, strings.Fields(line)...)
	digest := digests.FindString(printed)
	if got := digests.ReplaceAllString(printed, "X"); exit != 0 || got != digests.ReplaceAllString(want, "X") {
		t.Errorf("%s: status %d\ngot\n%s\nwant\n%s", line, exit, printed, want)
	}
	_, settings, _ := strings.Cut(text, "```yaml\n")
	settings, _, _ = strings.Cut(settings, "```\n")
	settings = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(settings, "127.0.0.1:0")
	i := launchServer(t, file(t, digests.ReplaceAllString(settings, digest)+adminAnywhere))
	for shown, want := range map[string]codes.Code{strings.TrimSpace(token): codes.OK, "hg_wrong": codes.Unauthenticated} {
		if _, err := askAsEnvoy(t, dialAs(t, i.GRPC, shown, nil)); status.Code(err) != want {
			t.Errorf("a call with %.8s... gets %v, want %s", shown, err, want)
		}
	}
}
