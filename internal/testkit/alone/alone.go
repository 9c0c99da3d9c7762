// Package alone runs a test in a process of its own. A test that measures the memory of its process needs this: the
// garbage, the goroutines and the free memory of other tests change the measurement.
package alone

import (
	"os"
	"os/exec"
	"testing"
)

// variable has the name of the test that a process runs.
const variable = "HEADGATE_TEST_ALONE"

// Here reports whether the test has a process of its own. Else it runs the test again in one, and fails the test if
// that run fails. Then the test returns:
//
//	if !alone.Here(t) {
//		return
//	}
func Here(t *testing.T) bool {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		return true
	}
	//nolint:gosec // The command is this test.
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	again.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	} else {
		t.Logf("in a process of its own:\n%s", out)
	}
	return false
}
