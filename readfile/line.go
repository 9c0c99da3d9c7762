package readfile

import (
	"fmt"
	"strings"
)

// Line gives the only line of a file, without the end of the line. The file has at
// most so many bytes.
// what names the content in errors, such as "password".
func Line(path string, most int64, what string) (string, error) {
	text, err := Head(path, most+1)
	if err != nil {
		return "", err
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case int64(len(text)) > most:
		return "", fmt.Errorf("%s has more than %d bytes: write the %s alone into it", path, most, what)
	case line == "":
		return "", fmt.Errorf("%s is empty: write the %s into it", path, what)
	case strings.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("%s has several lines: write the %s alone into it", path, what)
	}
	return line, nil
}
