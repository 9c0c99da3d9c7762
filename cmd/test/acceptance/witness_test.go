package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// witness is a strict upstream. It reads as the standard is written, checks that each connection
// has exactly one request, and keeps the requests.
type witness struct {
	url string
	ln  net.Listener

	mu    sync.Mutex
	got   []witnessed
	wrong []string
	open  map[net.Conn]bool
	all   sync.WaitGroup
}

// witnessed is a received request.
type witnessed struct {
	raw            string // the header
	method, target string
	fields         map[string][]string // by name in lower case
	body           string
	trailer        string
	whole          bool // the body is complete
}

// one gives the value of a field that occurs once.
func (r *witnessed) one(name string) string {
	if v := r.fields[name]; len(v) == 1 {
		return v[0]
	}
	return fmt.Sprintf("%d fields %s: %q", len(r.fields[name]), name, r.fields[name])
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{url: "http://" + ln.Addr().String(), ln: ln, open: map[net.Conn]bool{}}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		for _, wrong := range w.close() {
			t.Errorf("at the upstream: %s", wrong)
		}
	})
	return w
}

func (w *witness) accept() {
	for {
		conn, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open[conn] = true
		w.mu.Unlock()
		w.all.Go(func() {
			w.serve(conn)
			conn.Close()
			w.mu.Lock()
			delete(w.open, conn)
			w.mu.Unlock()
		})
	}
}

// close closes all connections and gives their faults.
func (w *witness) close() []string {
	w.ln.Close()
	w.mu.Lock()
	for conn := range w.open {
		conn.Close()
	}
	w.mu.Unlock()
	w.all.Wait()
	return w.wrong
}

// CloseClientConnections implements service. A witness keeps no connections, and forgets the
// requests of the warm-up.
func (w *witness) CloseClientConnections() { w.take() }

// take gives the complete requests since the last call.
func (w *witness) take() []witnessed {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

// The strict forms of the standard, without its tolerance for readers.
var (
	fieldNameTable = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	chunkSizeTable = regexp.MustCompile(`^([0-9a-f]{1,8})\r\n$`)
)

// serve answers one request.
func (w *witness) serve(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReaderSize(conn, 1<<21)
	r, err := readStrictly(in)
	if err != nil && r.raw == "" {
		return // The transport may open and close a connection.
	}
	if err != nil {
		w.faultf("%v in\n%s", err, r.raw)
		return
	}
	if !r.whole {
		return // The connection was closed early, which every service notices.
	}
	w.mu.Lock()
	w.got = append(w.got, r)
	w.mu.Unlock()
	body := "fine\n"
	if r.method == "HEAD" {
		body = ""
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n%s", body)
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		w.faultf("%q follows on\n%s", rest, r.raw)
	}
}

func (w *witness) faultf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func readStrictly(in *bufio.Reader) (r witnessed, err error) {
	r.fields = map[string][]string{}
	line, _ := in.ReadString('\n')
	r.raw = line
	parts := strings.Split(line, " ")
	if len(parts) != 3 || parts[2] != "HTTP/1.1\r\n" || !isTarget(parts[1]) || !fieldNameTable.MatchString(parts[0]) {
		return r, fmt.Errorf("no request line: %q", line)
	}
	r.method, r.target = parts[0], parts[1]
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return r, fmt.Errorf("a head without an end: %w", err)
		}
		if line == "\r\n" {
			break
		}
		r.raw += line
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ": ")
		if !fieldNameTable.MatchString(name) || !strings.HasSuffix(line, "\r\n") || !isFieldValue(value) {
			return r, fmt.Errorf("no field: %q", line)
		}
		name = strings.ToLower(name)
		r.fields[name] = append(r.fields[name], value)
	}
	if n := len(r.fields["host"]); n != 1 {
		return r, fmt.Errorf("%d Host fields", n)
	}
	err = r.readBody(in)
	return r, err
}

// isTarget accepts a path of printable ASCII, and a query that may have bytes above ASCII.
func isTarget(target string) bool {
	path, query, _ := strings.Cut(target, "?")
	for i := range len(path) {
		if path[i] <= ' ' || path[i] >= 0x7f {
			return false
		}
	}
	return strings.HasPrefix(path, "/") && isFieldValue(query) && !strings.ContainsAny(query, " \t")
}

// isFieldValue refuses control characters. Spaces around a value are not part of it.
func isFieldValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return value == strings.Trim(value, " \t")
}

// readBody leaves whole unset for a body that ends early, and gives no error.
func (r *witnessed) readBody(in *bufio.Reader) error {
	lengths, codings := r.fields["content-length"], r.fields["transfer-encoding"]
	switch {
	case len(lengths) > 0 && len(codings) > 0:
		return fmt.Errorf("lengths %q beside codings %q", lengths, codings)
	case len(codings) > 0:
		if len(codings) != 1 || codings[0] != "chunked" {
			return fmt.Errorf("codings %q", codings)
		}
		return r.readChunks(in)
	case len(lengths) > 0:
		n, err := strconv.ParseUint(lengths[0], 10, 31)
		if err != nil || len(lengths) != 1 || strconv.FormatUint(n, 10) != lengths[0] {
			return fmt.Errorf("lengths %q", lengths)
		}
		body := make([]byte, n)
		got, err := io.ReadFull(in, body)
		r.body, r.whole = string(body[:got]), err == nil
	default:
		r.whole = true
	}
	return nil
}

func (r *witnessed) readChunks(in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // It was broken off.
		}
		size := chunkSizeTable.FindStringSubmatch(line)
		if size == nil {
			return fmt.Errorf("chunk %q", line)
		}
		n, err := strconv.ParseUint(size[1], 16, 31)
		if err != nil {
			return err
		}
		if n == 0 {
			return r.readTrailer(in)
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil //nolint:nilerr // It was broken off.
		}
		if string(chunk[n:]) != "\r\n" {
			return fmt.Errorf("a chunk that ends with %q", chunk[n:])
		}
		r.body += string(chunk[:n])
	}
}

func (r *witnessed) readTrailer(in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // It was broken off.
		}
		if line == "\r\n" {
			r.whole = true
			return nil
		}
		r.trailer += line
	}
}
