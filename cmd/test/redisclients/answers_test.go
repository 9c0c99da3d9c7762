package redisclients_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// show gives an answer as text that is equal for all clients and both versions of the protocol: maps are sorted, and
// RESP2 has a list of names and values, 0 and 1, and texts in place of maps, booleans and doubles.
func show(answer any) string {
	switch v := answer.(type) {
	case error:
		return v.Error()
	case bool:
		return map[bool]string{false: "0", true: "1"}[v]
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		if len(v) > 0 && v[0] == "verdict" {
			return showMap(v)
		}
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = show(e)
		}
		return "[" + strings.Join(texts, " ") + "]"
	case map[any]any:
		return showMap(flat(v))
	case map[string]any:
		return showMap(flat(v))
	default:
		return fmt.Sprint(v)
	}
}

func flat[K comparable](m map[K]any) (all []any) {
	for name, value := range m {
		all = append(all, name, value)
	}
	return all
}

func showMap(namesAndValues []any) string {
	if len(namesAndValues) == 0 {
		return "[]" // The list of marks is a map in RESP3.
	}
	fields := map[string]string{}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		fields[show(namesAndValues[i])] = show(namesAndValues[i+1])
	}
	texts := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		texts = append(texts, name+"="+fields[name])
	}
	return "{" + strings.Join(texts, " ") + "}"
}

// socket is a client on a plain connection, which reads the types of both versions of the protocol strictly.
func socket(t *testing.T, at string, version int) asker {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := &answers{Reader: bufio.NewReader(conn), t: t, three: version == 3}
	if version == 3 {
		_, _ = io.WriteString(conn, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
		if hello := show(in.next()); !strings.Contains(hello, "proto=3") {
			t.Fatalf("HELLO 3 answers %s", hello)
		}
	}
	return func(t *testing.T, commands ...[]string) (all []string) {
		t.Helper()
		var text strings.Builder
		for _, words := range commands {
			fmt.Fprintf(&text, "*%d\r\n", len(words))
			for _, word := range words {
				fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
			}
		}
		go func() { _, _ = io.WriteString(conn, text.String()) }() // The server stops reading while answers are not read.
		for range commands {
			all = append(all, show(in.next()))
		}
		return all
	}
}

// answers reads answers of a connection.
type answers struct {
	*bufio.Reader

	t     *testing.T
	three bool // RESP3
}

// next reads an answer.
func (a *answers) next() any {
	line, err := a.ReadString('\n')
	if err != nil || !strings.HasSuffix(line, "\r\n") {
		a.t.Fatalf("an answer begins with %q, %v", line, err)
	}
	kind, rest := line[0], line[1:len(line)-2]
	if !a.three && !strings.ContainsRune("+-:$*", rune(kind)) {
		a.t.Fatalf("an answer in RESP2 begins with %q", line)
	}
	switch kind {
	case '+':
		return rest
	case '-':
		return fmt.Errorf("%s", rest)
	case ':', ',':
		n, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			a.t.Fatalf("the number %q: %v", line, err)
		}
		return n
	case '#':
		return rest == "t"
	case '_':
		return nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		a.t.Fatalf("the length %q: %v", line, err)
	}
	switch kind {
	case '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(a, b); err != nil || string(b[n:]) != "\r\n" {
			a.t.Fatalf("a text of %d bytes: %q, %v", n, b, err)
		}
		return string(b[:n])
	case '*':
		return a.list(n)
	case '%':
		fields := map[string]any{}
		for all := a.list(2 * n); len(all) > 0; all = all[2:] {
			fields[show(all[0])] = all[1]
		}
		return fields
	}
	a.t.Fatalf("an answer begins with %q", line)
	return nil
}

func (a *answers) list(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = a.next()
	}
	return all
}
