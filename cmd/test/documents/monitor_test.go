package documents

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// monitor reads the commands that a server executes, from its command MONITOR.
type monitor struct {
	server *testserver.Server
	lines  *bufio.Scanner
	marks  int
}

func newMonitor(t *testing.T, server *testserver.Server) *monitor {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	m := &monitor{server: server, lines: bufio.NewScanner(conn)}
	m.lines.Buffer(nil, 1<<20)
	if !m.lines.Scan() || m.lines.Text() != "+OK" {
		t.Fatalf("the reply to MONITOR is %q: %v", m.lines.Text(), m.lines.Err())
	}
	return m
}

// during returns the commands that the server executes while f runs, in the page's notation. It
// omits the pings of idle connections, the looks of the tests (KEYS), and all greetings except the first: their number and
// times are not predictable.
func (m *monitor) during(t *testing.T, f func()) []string {
	t.Helper()
	m.mark(t)
	m.until(t)
	f()
	m.mark(t)
	all := slices.DeleteFunc(m.until(t), func(line string) bool { return line == "PING" || strings.HasPrefix(line, "KEYS ") })
	return slices.CompactFunc(all, func(a, b string) bool { return a == greeting && b == greeting })
}

func (m *monitor) mark(t *testing.T) {
	t.Helper()
	m.marks++
	if _, err := m.server.Do("ECHO", fmt.Sprint("mark ", m.marks)); err != nil {
		t.Fatal(err)
	}
}

// greeting is the first command of a connection.
const greeting = "HELLO 3"

// monitorLine is +TIME [DB FROM] "WORD" "WORD"...
var (
	monitorLine = regexp.MustCompile(`^\+[0-9.]+ \[\d+ (\S+)\] (.*)$`)
	quoted      = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// until reads up to the last mark.
func (m *monitor) until(t *testing.T) []string {
	t.Helper()
	var all []string
	for m.lines.Scan() {
		found := monitorLine.FindStringSubmatch(m.lines.Text())
		if found == nil {
			t.Fatalf("MONITOR prints %q", m.lines.Text())
		}
		if strings.Contains(found[2], fmt.Sprintf(`"mark %d"`, m.marks)) {
			return all
		}
		var words []string
		for _, word := range quoted.FindAllStringSubmatch(found[2], -1) {
			words = append(words, word[1])
		}
		line := written(words)
		if found[1] == "lua" {
			line = "  " + line
		}
		all = append(all, line)
	}
	t.Fatalf("MONITOR has ended: %v", m.lines.Err())
	return nil
}

// shapes are the page's notations for arguments. The first match applies.
var shapes = []struct {
	form  *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`^hg3:\{[A-Za-z0-9_-]{20}\}:(\d+b)$`), "hg3:{DIGEST}:$1"},
	{regexp.MustCompile(`^hg3:\{[A-Za-z0-9_-]{20}\}:(\d+[tlfgw])[0-9a-z]+(:l)?$`), "hg3:{DIGEST}:${1}PERIOD$2"},
	{regexp.MustCompile(`^hg3:\{[A-Za-z0-9_-]{20}\}:(\d+[tlfgw])[0-9a-z]+:r[0-9a-z]+$`), "hg3:{DIGEST}:${1}PERIOD:rNUMBER"},
	{regexp.MustCompile(`^hg3:\{[A-Za-z0-9_-]{20}\}:(\d+s)$`), "hg3:{DIGEST}:$1"},
	{regexp.MustCompile(`^(take|renew|free|-inf)$`), "$0"},
	{regexp.MustCompile(`^1\d{15}$`), "MICROSECONDS"},
	{regexp.MustCompile(`^[0-9a-f]{40}$`), "SHA"},
	{regexp.MustCompile(`^1\d{12}$`), "MILLISECONDS"},
	{regexp.MustCompile(`^\d+$`), "$0"},
	{regexp.MustCompile(`^$`), `""`},
	{regexp.MustCompile(`^[A-Z]+$`), "$0"},
}

// written returns a command in the page's notation. Arguments that are not known names or numbers
// become DATA or SCRIPT.
func written(words []string) string {
	command := strings.ToUpper(words[0])
	shown := []string{command}
	for i, word := range words[1:] {
		text := "DATA"
		if command == "EVAL" && i == 0 {
			text = "SCRIPT"
		}
		for _, s := range shapes {
			if s.form.MatchString(word) {
				text = s.form.ReplaceAllString(word, s.shown)
				break
			}
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, " ")
}

// openRedis opens a store on a server, as user if user is not "".
func openRedis(t *testing.T, c redis.Config, user, password string) *redis.Store {
	t.Helper()
	c.Client.Username, c.Client.Password = user, password
	store, err := redis.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func single(server *testserver.Server) redis.Config {
	return redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Timeout: 10 * time.Second}
}
