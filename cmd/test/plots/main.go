// Command plots draws docs/plots: how permits are spread, from a simulation of package
// schedule in virtual time. What it draws depends on the code alone.
//
//	go run . [FOLDER]    writes into FOLDER, ../../../docs/plots by default
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const folder = "../../../docs/plots"

func main() {
	to := folder
	if len(os.Args) > 1 {
		to = os.Args[1]
	}
	if err := write(to); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// write draws all pictures into a folder.
func write(to string) error {
	for _, scene := range scenes() {
		p, err := scene()
		if err != nil {
			return err
		}
		text, err := p.draw()
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		//nolint:gosec // Documents are for all to read.
		if err := os.WriteFile(filepath.Join(to, p.file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func scenes() []func() (picture, error) {
	return []func() (picture, error){overload, step, lateDemand, burst}
}
