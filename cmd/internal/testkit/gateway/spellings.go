package gateway

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// spellings is how many spellings of a path the gateways get.
const spellings = 9000

// The pieces of a spelling. Some service, or a gateway, takes each of them for a part of a plain path.
var (
	beforeTable = []string{
		"/", "//", "/./", "/%2e/", "/%2E/", "/x/../", "/x/%2e%2e/", "/x/.%2e/", "/x/%2E./", "/x/..;/", "/x/..;a=b/", "/;/", "/x/..%2f",
		"/x%2f..%2f", "/%2f", "/x/..%5c", `/x/..\`, `/\`, "/%5c", "/x//../", "/x/./../", "/%2e%2e/", "/../", "/%252e%252e/",
		"/x/%252e%252e/", "http://free.example/", "HTTP://127.0.0.1/", "http://free.example//", "/%2e%2e%2f", "/.//", "/x/%2e%2e//",
	}
	segmentTable = []string{
		"search", "search", "%73earch", "s%65arch", "searc%68", "%73%65%61%72%63%68", "search;a=b", "search.", "search%20", "%2573earch",
		"search%00",
	}
	betweenTable = []string{
		"/", "//", "/./", "/%2e/", "%2f", "%2F", "/;/", "/x/../", "/x/%2e%2e/", "/../search/", "/%2e%2e/search/", "/.%2e/x/../search/",
		`\`, "%5c", ";/", "/..;/", "/../../", "/%2e%2e/%2e%2e/", "/../", "/%2e%2e/", "/.%2e/", "/%2E./", "/%2E%2E/", "/..%2f", "%2f..%2f",
		"%2f%2e%2e%2f", "/%252e%252e/", "//../", "/x//../../",
	}
	afterTable = []string{
		"x", "%78", "x?y=1", "x/", "x/.", "", "x?/../free", "x/..", "x/%2e%2e", "x;a=b", "x#y", "x%23", "../x", "%2e%2e/x", "?x",
	}
)

// targets returns the spellings, in an order that is the same in each run.
func targets() []string {
	random, seen := rand.New(rand.NewPCG(9, 9)), map[string]bool{}
	piece := func(table []string) string { return table[random.IntN(len(table))] }
	all := []string{"/search/%2e%2e/x", "/search/%2e%2e%2fx", "/search/..%2fx", "/search/.%2e/x", "/search/%2e/../x", "/search//../x"}
	for len(all) < spellings {
		if target := piece(beforeTable) + piece(segmentTable) + piece(betweenTable) + piece(afterTable); !seen[target] {
			seen[target] = true
			all = append(all, target)
		}
	}
	return all
}

// Spell sends spellings of paths to the gateway: see the function Spell.
func (g *Gateway) Spell(t *testing.T, launch Launch) {
	t.Helper()
	headgate := launch(t, strings.Replace(Settings(t), "limits: [100/1s, 1000/1m]", "limits: [1000000/1s]", 1))
	Spell(t, func(service string) string { return g.start(t, headgate.HTTP, service, http.StatusOK) })
}

// Spell sends spellings of paths to what start puts before a service, from a client that has used up the limit of /search/*. The
// service routes by the path as it comes. It may not get a path that it reads as one below /search, decoded and resolved or not.
func Spell(t *testing.T, start func(service string) (at string)) {
	t.Helper()
	s := startRaw(t)
	limited := newClient(start(s.at), "127.0.0.11")
	for limited.send(t, http.MethodGet, "/search/x", "").status == http.StatusOK { //nolint:revive // because the request is the work.
	}
	all, next := targets(), make(chan int)
	s.clear()
	statuses := make([]int, len(all))
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			line := limited.line()
			defer line.close()
			for i := range next {
				statuses[i] = line.ask(t, all[i], i)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	senders.Wait()
	counts := map[int]int{}
	for i, target := range all {
		counts[statuses[i]]++
		for _, got := range s.got(i) {
			if below(got) {
				t.Errorf("GET %s gets %d, and the service %s", target, statuses[i], got)
			}
		}
	}
	t.Logf("statuses %v", counts)
	if counts[http.StatusTooManyRequests] < spellings/20 || counts[http.StatusOK] < spellings/100 {
		t.Errorf("the statuses are %v: too few decisions for a comparison", counts)
	}
}

// below reports whether a service takes a target for a path below /search: by the path as it is, decoded, or decoded and resolved.
func below(target string) bool {
	if _, rest, found := strings.Cut(target, "://"); found && target[0] != '/' {
		_, rest, _ = strings.Cut(rest, "/")
		target = "/" + rest
	}
	raw, _, _ := strings.Cut(target, "?")
	raw, _, _ = strings.Cut(raw, "#")
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		decoded = raw
	}
	for _, read := range []string{raw, decoded, path.Clean("/" + decoded), path.Clean("/" + raw)} {
		if read == "/search" || strings.HasPrefix(read, "/search/") {
			return true
		}
	}
	return false
}

// line is a connection of a client that stays open as long as the gateway keeps it.
type line struct {
	client  *client
	conn    net.Conn
	answers *bufio.Reader
}

func (c *client) line() *line { return &line{client: c} }

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// ask sends a request with a number, and returns its status; 0 without an answer.
func (l *line) ask(t *testing.T, target string, number int) int {
	t.Helper()
	for range 2 { // The gateway may have closed the connection.
		kept := l.conn != nil
		if !kept {
			conn, err := l.client.dialer.DialContext(t.Context(), "tcp", l.client.at)
			if err != nil {
				t.Error(err)
				return 0
			}
			l.conn, l.answers = conn, bufio.NewReader(conn)
		}
		_ = l.conn.SetDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprintf(l.conn, "GET %s HTTP/1.1\r\nHost: a.example\r\nX-Number: %d\r\n\r\n", target, number)
		got, err := http.ReadResponse(l.answers, nil)
		if err != nil {
			l.close()
			if kept {
				continue
			}
			return 0
		}
		_, _ = io.Copy(io.Discard, got.Body) // Only the header matters.
		_ = got.Body.Close()
		if got.Close {
			l.close()
		}
		return got.StatusCode
	}
	return 0
}

// rawService is a service that takes every target. It keeps the targets that it has got under the numbers of their requests.
type rawService struct {
	at  string
	mu  sync.Mutex
	all map[int][]string
}

func startRaw(t *testing.T) *rawService {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &rawService{at: l.Addr().String()}
	s.clear()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *rawService) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = map[int][]string{}
}

func (s *rawService) got(number int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[number]
}

// serve answers requests without bodies.
func (s *rawService) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		first, err := in.ReadString('\n')
		if err != nil {
			return
		}
		target := ""
		if words := strings.SplitN(strings.TrimRight(first, "\r\n"), " ", 2); len(words) == 2 {
			target = words[1][:max(0, strings.LastIndexByte(words[1], ' '))]
		}
		number := -1
		for {
			field, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if field = strings.TrimRight(field, "\r\n"); field == "" {
				break
			}
			if name, value, _ := strings.Cut(field, ":"); strings.EqualFold(name, "X-Number") {
				number, _ = strconv.Atoi(strings.TrimSpace(value)) // A wrong number belongs to no request.
			}
		}
		s.mu.Lock()
		s.all[number] = append(s.all[number], target)
		s.mu.Unlock()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}
