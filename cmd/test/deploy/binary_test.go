package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binaryFolder contains the built binary. TestMain removes the folder after the tests.
var binaryFolder string

// built builds headgate once, as a static binary for an image without other files.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaryFolder, "headgate")
	build := exec.Command("go", "build", "-o", path, "./cmd/headgate")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
})

func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
