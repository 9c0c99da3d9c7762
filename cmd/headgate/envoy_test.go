package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// envoyFolder returns a folder with a file for each text: 0.yaml, 1.yaml and so on.
func envoyFolder(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, string(rune('0'+i))+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	envoyShop = "domain: shop\ndescriptors:\n- {key: path, value: /a*, rate_limit: {unit: minute, requests_per_unit: 20}}\n"
	envoyMore = "domain: shop\ndescriptors:\n- {key: user, rate_limit: {unlimited: true}}\n"
)

func TestCheckOfEnvoyFiles(t *testing.T) {
	dir := envoyFolder(t, envoyShop, strings.Replace(envoyMore, "shop", "other", 1))
	status, stdout, stderr := call(t, "check", dir)
	want := dir + ` is fine: 2 domains

DOMAIN  DESCRIPTOR  MODE     ALGORITHM     LIMITS
shop    path=/a*    enforce  fixed_window  20/1m
other   user        enforce  -             unlimited
`
	if status != exitOK || stderr != "" || stdout != want {
		t.Errorf("status %d: %s%s\nwant %s", status, stdout, stderr, want)
	}
	status, stdout, _ = call(t, "check", filepath.Join(dir, "0.yaml"))
	if want := "0.yaml is fine: 1 domain\n"; status != exitOK || !strings.Contains(stdout, want) {
		t.Errorf("one file: status %d: %s\nwant %s", status, stdout, want)
	}
}

// TestCheckOfFaultyEnvoyFiles checks that the faults of all files come at once.
func TestCheckOfFaultyEnvoyFiles(t *testing.T) {
	dir := envoyFolder(t, strings.Replace(envoyShop, "minute", "minuet", 1), "descriptors: []\n")
	status, stdout, stderr := call(t, "check", dir)
	for _, want := range []string{
		filepath.Join(dir, "0.yaml") + `:3:46: descriptors[0].rate_limit.unit: "minuet" is not a unit: use second, minute,`,
		filepath.Join(dir, "1.yaml") + `:1:1: domain: is missing: begin with domain: NAME`,
	} {
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("status %d, printed %q, and\n%s\nwant %s", status, stdout, stderr, want)
		}
	}
	if status, _, stderr := call(t, "check", t.TempDir()); status != exitUsage || !strings.Contains(stderr, "has no files") {
		t.Errorf("an empty folder: status %d: %s", status, stderr)
	}
}

func TestMergeOfEnvoyFiles(t *testing.T) {
	dir := envoyFolder(t, envoyShop, envoyMore)
	if status, _, stderr := call(t, "check", dir); status != exitUsage || !strings.Contains(stderr, "MERGE_DOMAIN_CONFIG") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, stdout, _ := call(t, "check", dir, "--merge"); status != exitOK || !strings.Contains(stdout, "is fine: 1 domain\n") {
		t.Errorf("--merge: status %d: %s", status, stdout)
	}
	t.Setenv("MERGE_DOMAIN_CONFIG", "true")
	if status, stdout, _ := call(t, "convert", dir); status != exitOK || !strings.Contains(stdout, "unlimited: true") {
		t.Errorf("MERGE_DOMAIN_CONFIG: status %d: %s", status, stdout)
	}
}

func TestExplainOfADescriptor(t *testing.T) {
	dir := envoyFolder(t, envoyShop)
	status, stdout, stderr := call(t, "check", dir, "--explain", "shop path=/abc")
	if want := "limits     20/1m, by fixed_window\n"; status != exitOK || !strings.Contains(stdout, want) {
		t.Errorf("status %d: %s%s\nwant %s", status, stdout, stderr, want)
	}
	for _, row := range [][2]string{{"shopping path=/a", `use one of "shop"`}, {"GET /a", `no domain "GET"`}} {
		if status, _, stderr := call(t, "check", dir, "--explain", row[0]); status != exitUsage || !strings.Contains(stderr, row[1]) {
			t.Errorf("%s: status %d: %s\nwant %s", row[0], status, stderr, row[1])
		}
	}
	if status, _, stderr := call(t, "check", dir, "--explain", "shop path=/a", "--ip", "10.0.0.1"); status != exitUsage || !strings.Contains(stderr, "leave them out") {
		t.Errorf("--ip: status %d: %s", status, stderr)
	}
}

// TestConvert checks that the converted form is a configuration that explains the same.
func TestConvert(t *testing.T) {
	status, stdout, stderr := call(t, "convert", envoyFolder(t, envoyShop))
	want := "version: 1\ndomains:\n  shop:\n    descriptors:\n      - key: path\n        value: \"/a*\"\n        limits: 20/1m\n"
	if status != exitOK || stdout != want {
		t.Fatalf("status %d: %s%s\nwant %s", status, stdout, stderr, want)
	}
	path := write(t, stdout)
	if status, stdout, _ := call(t, "check", path); status != exitOK || !strings.Contains(stdout, "shop    path=/a*    enforce  fixed_window  20/1m") {
		t.Errorf("check: status %d: %s", status, stdout)
	}
	status, stdout, stderr = call(t, "check", path, "--explain", "shop path=/abc")
	if want := "node       path=\"/a*\"\n"; status != exitOK || !strings.Contains(stdout, want) {
		t.Errorf("explain: status %d: %s%s\nwant %s", status, stdout, stderr, want)
	}
	if status, stdout, stderr := call(t, "convert", envoyFolder(t, "a: b\n")); status != exitUsage || stdout != "" || !strings.Contains(stderr, `field "a"`) {
		t.Errorf("a faulty file: status %d, printed %q, and %s", status, stdout, stderr)
	}
}

// TestEnvoyPage runs the commands of docs/envoy.md and compares their output with the page.
func TestEnvoyPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("limits", 0o700); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for i, part := range strings.Split(string(page), "\n$ ")[1:] {
		command, output, _ := strings.Cut(strings.Split(part, "\n```")[0], "\n")
		if file, found := strings.CutPrefix(command, "cat "); found {
			if err := os.WriteFile(file, []byte(output+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if i == 2 { // The page shows the output for a file with a typo.
			typo(t, "minute", "minuet")
		}
		words := strings.SplitN(strings.TrimPrefix(command, "headgate "), " --explain ", 2)
		args := strings.Fields(strings.TrimSuffix(words[0], " > headgate.yaml"))
		if len(words) == 2 {
			args = append(args, "--explain", strings.Trim(words[1], "'"))
		}
		if args[0] == "convert" {
			_, output, _ = strings.Cut(strings.Split(part, "\n```\n")[1], "```yaml\n")
		}
		_, stdout, stderr := call(t, args...)
		if got := strings.TrimSpace(stdout + stderr); got != strings.TrimSpace(output) {
			t.Errorf("%s prints\n%s\nthe page has\n%s", command, got, output)
		}
		if ran++; i == 2 {
			typo(t, "minuet", "minute")
		}
	}
	if ran != 4 {
		t.Errorf("the page has %d commands, want 4", ran)
	}
}

// typo replaces a word in limits/shop.yaml.
func typo(t *testing.T, from, to string) {
	t.Helper()
	const path = "limits/shop.yaml"
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
