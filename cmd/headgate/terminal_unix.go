//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf gives the size of a terminal, 0 where the system does not tell.
func sizeOf(terminal *os.File) (rows, columns int) {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Row), int(size.Col)
}
