package readfile

import (
	"fmt"
	"strings"
)

// Line returns the only line of a file, without the end of the line. A file with more than
// most bytes is an error. The argument what names the content in errors, for example
// "password".
func Line(path string, most int64, what string) (string, error) {
	text, err := Head(path, most+1)
	if err != nil {
		return "", err
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case int64(len(text)) > most:
		return "", fmt.Errorf("%s has more than %d bytes: write only the %s into the file", path, most, what)
	case line == "":
		return "", fmt.Errorf("%s is empty: write the %s into the file", path, what)
	case strings.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("%s has several lines: write only the %s into the file", path, what)
	}
	return line, nil
}
