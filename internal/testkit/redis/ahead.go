package redis

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shift is a library that shifts the wall clock of a program. libfaketime 0.9.10 does not suit redis-server: its
// first call waits for itself, because jemalloc reads the clock while it starts.
//
//go:embed testdata/ahead.c
var shift string

// StartAhead is Start for a server whose clock is ahead of that of the machine, or behind it, in whole seconds. It needs
// gcc, as the race detector does.
func StartAhead(tb testing.TB, ahead time.Duration, settings ...string) *Server {
	tb.Helper()
	library := filepath.Join(tb.TempDir(), "ahead.so")
	words := []string{"-O1", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", "-o", library}
	compile := exec.CommandContext(tb.Context(), "gcc", words...) //nolint:gosec // the folder is that of the test
	compile.Stdin = strings.NewReader(shift)
	if out, err := compile.CombinedOutput(); err != nil {
		tb.Fatalf("gcc: %v: run make deps\n%s", err, out)
	}
	a := access{env: []string{"LD_PRELOAD=" + library, fmt.Sprintf("AHEAD_SECONDS=%d", int64(ahead/time.Second))}}
	return start(tb, a, func(dir string, port int) []string {
		return append(common(dir, "--port", strconv.Itoa(port)), settings...)
	})
}
