package main

import (
	"io"
	"os"
)

// isTerminal reports whether w shows what it gets to people.
func isTerminal(w io.Writer) bool { return terminal(w) != nil }

// terminal gives the terminal that w is; nil is none.
func terminal(w io.Writer) *os.File {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return file
}

// terminalWindow gives what tells the size of the terminal that w is, 0 where that is
// not known; nil is no terminal.
func terminalWindow(w io.Writer) func() (rows, columns int) {
	file := terminal(w)
	if file == nil {
		return nil
	}
	return func() (rows, columns int) { return sizeOf(file) }
}
