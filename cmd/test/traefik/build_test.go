package traefik

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// headgateBinary and traefikBinary are the paths of the programs for all tests of this package.
var headgateBinary, traefikBinary string

// TestMain builds headgate and Traefik.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "headgate-traefik-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	headgateBinary, traefikBinary = filepath.Join(folder, "headgate"), filepath.Join(folder, "traefik")
	if _, err := command(filepath.Join("..", "..", ".."), "build", "-o", headgateBinary, "./cmd/headgate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := buildTraefik(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// buildTraefik builds Traefik with the versions of testdata/program/go.mod, but without the DNS services of the library
// lego: their client libraries are half of Traefik, and no gateway uses them. In a copy of lego, testdata/dns.go takes
// the place of the list of these services.
func buildTraefik(folder string) error {
	program, err := filepath.Abs(filepath.Join("testdata", "program"))
	if err != nil {
		return err
	}
	const module = "github.com/go-acme/lego/v5"
	if _, err := command(program, "mod", "download", module); err != nil {
		return err
	}
	original, err := command(program, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return err
	}
	lego := filepath.Join(folder, "lego")
	if err := os.CopyFS(lego, os.DirFS(strings.TrimSpace(string(original)))); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(lego, "providers", "dns", "zz_gen_dns_providers.go"), filepath.Join("testdata", "dns.go")); err != nil {
		return err
	}
	mod := filepath.Join(folder, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(folder, name), filepath.Join(program, name)); err != nil {
			return err
		}
	}
	if _, err := command(program, "mod", "edit", "-replace", module+"="+lego, mod); err != nil {
		return err
	}
	_, err = command(program, "build", "-modfile", mod, "-trimpath", "-ldflags", "-s -w", "-o", traefikBinary,
		"github.com/traefik/traefik/v3/cmd/traefik")
	return err
}

// command runs go in a folder and returns its output. A program without cgo is built faster.
func command(folder string, words ...string) ([]byte, error) {
	c := exec.Command("go", words...)
	c.Dir, c.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if filepath.Base(folder) == "program" { // a module of its own, with -modfile, which a workspace refuses
		c.Env = append(c.Env, "GOWORK=off")
	}
	text, err := c.Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output does not wrap its errors.
		return nil, fmt.Errorf("go %v: %w\n%s", words, err, exit.Stderr)
	}
	return text, err
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
