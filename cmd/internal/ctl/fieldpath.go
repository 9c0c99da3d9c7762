package ctl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// nameLetters are the characters of a name that needs no quotes.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

var (
	errNoField = errors.New("the argument has no field: write FIELD=VALUE, like plan=paid or hard.api_calls=300")
	errBadName = errors.New("the name of a field has letters, digits, - and _: write other names in brackets and quotes, like " +
		`'overrides["192.0.2.1"].limits=[5/s]'`)
)

// cutPath splits FIELD=VALUE into the names of the fields and the value.
func cutPath(arg string) (path []string, value string, err error) {
	rest := arg
	for {
		var name string
		switch {
		case strings.HasPrefix(rest, "["):
			name, rest, err = cutQuoted(rest)
		default:
			end := strings.IndexAny(rest, ".[=")
			if end < 0 {
				return nil, "", errNoField
			}
			name, rest = rest[:end], rest[end:]
			switch {
			case name == "" && path == nil && rest[0] == '=':
				err = errNoField
			case name == "" || strings.Trim(name, nameLetters) != "":
				err = errBadName
			}
		}
		if err != nil {
			return nil, "", err
		}
		path = append(path, name)
		switch {
		case strings.HasPrefix(rest, "="):
			return path, rest[1:], nil
		case strings.HasPrefix(rest, "."):
			if rest = rest[1:]; strings.HasPrefix(rest, "[") {
				return nil, "", fmt.Errorf("a dot stands before a bracket: leave out the dot, as in %s", fieldExample)
			}
		case !strings.HasPrefix(rest, "["):
			return nil, "", errNoField
		}
	}
}

const fieldExample = `overrides["192.0.2.1"].limits`

// cutQuoted splits ["NAME"] or ['NAME'] from the rest of a path. NAME in double quotes may have the escapes of JSON.
func cutQuoted(text string) (name, rest string, err error) {
	bad := fmt.Errorf("brackets have a name in quotes, as in %s", fieldExample)
	inner := text[1:]
	switch {
	case strings.HasPrefix(inner, `"`):
		quoted, failed := strconv.QuotedPrefix(inner)
		if failed != nil {
			return "", "", bad
		}
		if name, failed = strconv.Unquote(quoted); failed != nil {
			return "", "", bad
		}
		rest = inner[len(quoted):]
	case strings.HasPrefix(inner, "'"):
		var found bool
		if name, rest, found = strings.Cut(inner[1:], "'"); !found {
			return "", "", bad
		}
	default:
		return "", "", bad
	}
	rest, closed := strings.CutPrefix(rest, "]")
	if !closed || name == "" {
		return "", "", bad
	}
	return name, rest, nil
}
