package resp

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestRedisCLI runs the examples of docs/redis-protocol.md with redis-cli, and compares their output.
func TestRedisCLI(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/redis-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, at := startServer(t, new(clock), 0)
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder // the commands
	for _, block := range strings.Split(string(page), "```\n$ ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for example := range strings.SplitSeq(block, "\n$ ") {
			line, want, _ := strings.Cut(example, "\n")
			all.WriteString(line + "\n")
			out, err := exec.CommandContext(t.Context(), "bash", "-c",
				strings.NewReplacer("redis-cli ", "redis-cli --no-raw ", "-p 6380", "-p "+port).Replace(line)).CombinedOutput()
			if err != nil || !shows(steady(want), steady(string(out))) {
				t.Errorf("%s: %v\ngot\n%s\nwant\n%s", line, err, out, want)
			}
		}
	}
	names := []string{
		"client id", "client getname", "client setname", "client setinfo", "command count", "command docs", "command info", "hello 2", "hello 3",
	}
	for i := range descriptions {
		names = append(names, descriptions[i].name)
	}
	for _, name := range names {
		if !strings.Contains(all.String(), strings.ToUpper(name)) {
			t.Errorf("docs/redis-protocol.md has no example with %s", strings.ToUpper(name))
		}
	}
}

// steady splits an output into lines, and replaces the values that differ from run to run.
func steady(output string) []string {
	output = strings.ReplaceAll(strings.TrimSpace(output), "\r", "")
	output = regexp.MustCompile(`("id"\n14\) |"id" => |^)\(integer\) \d+`).ReplaceAllString(output, "${1}(integer) N")
	return strings.Split(regexp.MustCompile(`((?:uptime|connected|total)_\w+):\d+`).ReplaceAllString(output, "$1:N"), "\n")
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
