// Command twice prints which tests must also run without the race detector. The output is a list
// of arguments for go test: a regular expression of test names, and packages. These tests read
// race.On or call race.Fewer, directly or through a function that they call. Or their files are built only
// without the detector.
//
//	go test $(go run ./internal/testkit/race/twice ./cmd/test/documents)
//
// Its arguments are packages in which all tests run.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "twice:", err)
		os.Exit(1)
	}
}

func run(to io.Writer, complete []string) error {
	folders, err := testFolders()
	if err != nil {
		return err
	}
	suite, err := dependents("./store/storetest", nil)
	if err != nil {
		return err
	}
	tests, packages := map[string]bool{}, slices.Clone(complete)
	for _, folder := range folders {
		found, err := dependents(folder, suite)
		if err != nil {
			return err
		}
		names := testsAmong(found)
		if slices.Contains(complete, folder) {
			if names, err = allTests(folder); err != nil {
				return err
			}
		} else if len(names) > 0 {
			packages = append(packages, folder)
		}
		for _, name := range names {
			tests[name] = true
		}
	}
	if len(tests) == 0 {
		return fmt.Errorf("no test depends on the race detector: tests must import %s", racePath)
	}
	_, err = fmt.Fprintf(to, "-run ^(%s)$ %s\n", strings.Join(slices.Sorted(maps.Keys(tests)), "|"), strings.Join(packages, " "))
	return err
}

// testFolders lists the folders of the workspace that have tests, in the form ./guard.
func testFolders() ([]string, error) {
	const withTests = "{{if or .TestGoFiles .XTestGoFiles .IgnoredGoFiles}}{{.ImportPath}}{{end}}"
	out, err := exec.CommandContext(context.Background(), "go", "list", "-f", withTests, "work").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var folders []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		folders = append(folders, "."+strings.TrimPrefix(lines.Text(), modulePath))
	}
	return folders, nil
}

// testsAmong returns the names that go test runs.
func testsAmong(names map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		return !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") || name == "TestMain"
	})
}
