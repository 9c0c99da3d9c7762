package acceptance

import (
	"bufio"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// step is a request by curl and its expected result.
type step struct {
	times int // 0 means once
	path  string
	args  []string // further arguments of curl
	want  int
	// tells has expected fields of the answer, and seen those of the service's request, for example
	// "Location: /busy". "Location:" is an absent field. "Retry-After: ~60" is 60, or a little less
	// on a busy machine.
	tells, seen []string
}

// with gives headers in the form of curl's arguments.
func with(headers ...string) []string {
	var args []string
	for _, h := range headers {
		args = append(args, "-H", h)
	}
	return args
}

// from sends from an address in 127.0.0.0/8; all of these belong to this machine.
func from(address string, headers ...string) []string {
	return append([]string{"--interface", address}, with(headers...)...)
}

// walk takes the steps one after the other. The service must be a mirror if a step has seen
// fields.
func walk(t *testing.T, url string, steps []step) {
	t.Helper()
	for n, s := range steps {
		for range max(1, s.times) {
			got := ask(t, append(slices.Clone(s.args), url+s.path)...)
			if got.status != s.want {
				t.Errorf("step %d, %s %v: status %d, want %d", n+1, s.path, s.args, got.status, s.want)
			}
			carries(t, "the answer", got.header, s.tells)
			if len(s.seen) > 0 {
				carries(t, "what the service saw", fields(t, got.body), s.seen)
			}
			if t.Failed() {
				t.Fatalf("step %d, %s %v: %d %v\n%s", n+1, s.path, s.args, got.status, got.header, got.body)
			}
		}
	}
}

func carries(t *testing.T, where string, header http.Header, lines []string) {
	t.Helper()
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		got, want := strings.Join(header.Values(name), ", "), strings.TrimSpace(value)
		if before, number, about := strings.Cut(want, "~"); about {
			most, _ := strconv.Atoi(number)
			if rest, fits := strings.CutPrefix(got, before); fits {
				if n, err := strconv.Atoi(rest); err == nil && n <= most && n > most-int(patience.Seconds()) {
					continue
				}
			}
		}
		if got != want {
			t.Errorf("%s has %s: %q, want %q", where, name, got, want)
		}
	}
}

// mirror is an upstream that answers with the fields of its request.
func mirror() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = r.Header.Write(w)
	})
}

func fields(t *testing.T, text string) http.Header {
	t.Helper()
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(text + "\r\n"))).ReadMIMEHeader()
	if err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return http.Header(header)
}

// answer is an answer that curl got.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends one request by curl.
func ask(t *testing.T, args ...string) answer {
	t.Helper()
	head, body := curl(t, args...)
	words := strings.Fields(head[0])
	if len(words) < 2 {
		t.Fatalf("curl %v prints no status: %q", args, head)
	}
	status, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatalf("curl %v: %v: %q", args, err, head)
	}
	return answer{status, fields(t, strings.Join(head[1:], "\r\n")+"\r\n"), body}
}

// givesUp sends a request by curl, which leaves before the answer.
func givesUp(t *testing.T, seconds string, args ...string) {
	t.Helper()
	err := exec.CommandContext(t.Context(), tool(t, "curl", "curl"), append([]string{"-sS", "--max-time", seconds}, args...)...).Run()
	if timedOut := 28; exitStatus(err) != timedOut {
		t.Errorf("curl %v ends with %v, want status %d for its time", args, err, timedOut)
	}
}

// metric gives the value of a series, for example headgate_waiting. It gives -1 for an unknown
// series.
func metric(t *testing.T, i *instance, series string) float64 {
	t.Helper()
	_, text := get(t, "http://"+i.Health+"/metrics")
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return -1
}

// decisions gives the number of such decisions of a rule.
func decisions(t *testing.T, i *instance, rule, mode, verdict, reason string) float64 {
	t.Helper()
	return metric(t, i, `headgate_decisions_total{mode="`+mode+`",reason="`+reason+`",rule="`+rule+`",verdict="`+verdict+`"}`)
}

// replace writes a new file and renames it, as editors and downloads do.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(path), "fresh-"+filepath.Base(path))
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}
