//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf returns the size of a terminal. The size is 0 when it is unknown.
func sizeOf(terminal *os.File) (rows, columns int) {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Row), int(size.Col)
}
