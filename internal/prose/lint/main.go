// Command lint prints the phrases that package prose finds in this module. It runs in the root
// of the module and exits with 1 when it finds a phrase.
package main

import (
	"fmt"
	"os"

	"github.com/headgate/headgate/internal/prose"
)

func main() {
	faults, err := prose.Check(os.DirFS("."))
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
	}
	if len(faults) > 0 || err != nil {
		os.Exit(1)
	}
}
