package main

import (
	"io"
	"os"
	"strconv"
)

func isTerminal(w io.Writer) bool { return terminal(w) != nil }

// terminal returns w as a terminal, or nil when w is not a terminal.
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

// terminalWindow returns a function that reads the size of the terminal w. The size is 0
// when it is unknown. The function is nil when w is not a terminal.
func terminalWindow(w io.Writer) func() (rows, columns int) {
	file := terminal(w)
	if file == nil {
		return nil
	}
	return func() (rows, columns int) { return sizeOf(file) }
}

// helpWidth returns the columns of the help: those of the variable COLUMNS, of the terminal, or 80.
func helpWidth(w io.Writer) int {
	const usual = 80
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		return columns
	}
	if window := terminalWindow(w); window != nil {
		if _, columns := window(); columns > 0 {
			return columns
		}
	}
	return usual
}
