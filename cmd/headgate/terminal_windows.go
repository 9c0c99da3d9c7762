package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// sizeOf returns the size of a terminal. The size is 0 when it is unknown.
func sizeOf(terminal *os.File) (rows, columns int) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info); err != nil {
		return 0, 0
	}
	return int(info.Window.Bottom-info.Window.Top) + 1, int(info.Window.Right-info.Window.Left) + 1
}
