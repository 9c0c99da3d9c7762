package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// row has the columns of a row in PostgreSQL's text form; nil is NULL. It is valid until the next row.
//
// The package uses the library's connections, but not its types of columns: those would be 2 MB of the binary.
type row [][]byte

// scan stores the columns. A target is a pointer to a string, bool, int or int64, to a pointer to one of them if the column may
// be NULL, or to strings for an array of numbers.
func (r row) scan(targets ...any) error {
	if len(r) != len(targets) {
		return fmt.Errorf("a row of the server has %d columns, and %d are needed: check what a pooler there answers", len(r), len(targets))
	}
	for i, target := range targets {
		if err := scanColumn(r[i], target); err != nil {
			return fmt.Errorf("column %d of a row of the server is %.60q: %w", i+1, r[i], err)
		}
	}
	return nil
}

func scanColumn(column []byte, target any) (err error) {
	text := string(column)
	switch to := target.(type) {
	case **string:
		if column != nil {
			*to = &text
		}
		return nil
	case **int64:
		if column != nil {
			*to = new(int64)
			return scanColumn(column, *to)
		}
		return nil
	}
	if column == nil {
		return fmt.Errorf("NULL does not fit %T", target)
	}
	switch to := target.(type) {
	case *string:
		*to = text
	case *bool:
		*to, err = strconv.ParseBool(text)
	case *int:
		*to, err = strconv.Atoi(text)
	case *int64:
		*to, err = strconv.ParseInt(text, 10, 64)
	case *[]string:
		*to = strings.Split(strings.Trim(text, "{}"), ",")
	default:
		err = fmt.Errorf("it does not fit %T", target)
	}
	return err
}

// The numbers of PostgreSQL's types: the server takes an argument as the type that it was given.
const (
	textType    = 25
	numberType  = 20
	booleanType = 16
)

// encode returns the arguments of a statement in text form, with their types. An empty text is not nil, which would be NULL.
func encode(args []any) (values [][]byte, types []uint32) {
	for _, arg := range args {
		kind := uint32(textType)
		switch arg.(type) {
		case int, int64:
			kind = numberType
		case bool:
			kind = booleanType
		}
		values, types = append(values, fmt.Append([]byte{}, arg)), append(types, kind)
	}
	return values, types
}

// rows runs a query and calls each for every row. A server that is silent within the answer ends it. The statement has no name:
// prepared ones do not work with all poolers.
func (c *connection) rows(ctx context.Context, each func(row) error, sql string, args ...any) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
	defer timer.Stop()
	values, types := encode(args)
	answer := c.ExecParams(inner, sql, values, types, nil, nil)
	for answer.NextRow() {
		timer.Reset(c.timeout)
		if err := each(answer.Values()); err != nil {
			_, _ = answer.Close() // The rest of the answer; its fault is the later one.
			return err
		}
	}
	_, err := answer.Close()
	return silence(inner, err)
}
