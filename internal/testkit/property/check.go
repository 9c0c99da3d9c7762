package property

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// runs is the number of cases of a Check.
const runs = 100

// seedVariable is the environment variable with the seed of a case that failed.
const seedVariable = "HEADGATE_PROPERTY_SEED"

// T is the test of one case. Its methods Fail, Fatal, Log and so on are those of the whole test.
type T struct {
	*testing.T

	random *rand.Rand
	size   int // The largest usual length, from 1 to runs.
	drawn  []string
}

// Check calls f with random cases until one of them fails.
func Check(t *testing.T, f func(t *T)) {
	t.Helper()
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: %v: give the number that a failing run has logged", seedVariable, text, err)
		}
		check(t, seed, f)
		return
	}
	for first, i := rand.Uint64()/runs*runs, uint64(0); i < runs && !t.Failed(); i++ {
		check(t, first+i, f)
	}
}

// check runs one case. Its size follows from the seed, so that the seed alone repeats it.
func check(t *testing.T, seed uint64, f func(t *T)) {
	t.Helper()
	c := &T{T: t, random: rand.New(rand.NewPCG(seed, 0)), size: int(seed%runs) + 1}
	ended := false
	// Also a panic and FailNow end the case.
	defer func() {
		if !ended || t.Failed() {
			t.Helper()
			t.Logf("%s=%d repeats the case with\n%s", seedVariable, seed, strings.Join(c.drawn, "\n"))
		}
	}()
	f(c)
	ended = true
}

// Skip fails the test: it would skip the whole test, and not one case.
func (t *T) Skip(...any) {
	t.Helper()
	t.Fatal("property: return from the function in place of Skip")
}

// note keeps a drawn value for the log of a failure.
func (t *T) note(label string, v any) {
	const most = 1000 // A longer log is not read.
	if len(t.drawn) < most {
		t.drawn = append(t.drawn, fmt.Sprintf("\t%s: %#v", label, v))
	}
}
