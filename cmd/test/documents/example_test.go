package documents

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// example is one configuration of a document with its requests.
type example struct {
	place  string // The form is file:line.
	config string
	lines  []line
}

// line is one line of a requests block.
type line struct {
	place string
	times int
	pause time.Duration
	from  string // The address of the peer. "" means 198.51.100.1.
	as    string // The subject of the client's certificate.

	method, target string
	headers        []string // The form is "Name: value".

	status int
	waits  time.Duration
	// want are header fields of the answer. Fields with the prefix "service " are header
	// fields of the request to the service. An empty value means that the field is absent.
	want []string
}

// readExamples returns the examples of a document: each yaml block with the requests block after
// it.
func readExamples(t *testing.T, file string) []example {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	kind := ""
	for n, row := range strings.Split(string(text), "\n") {
		place := fmt.Sprintf("%s:%d", file, n+1)
		switch {
		case kind == "" && strings.HasPrefix(row, "```"):
			kind = cmpOr(strings.TrimPrefix(row, "```"), "text")
			if kind == "yaml" {
				all = append(all, example{place: place})
			}
		case row == "```":
			kind = ""
		case kind == "yaml":
			all[len(all)-1].config += row + "\n"
		case kind == "requests" && strings.TrimSpace(row) != "":
			if len(all) == 0 {
				t.Fatalf("%s: requests without a configuration before them", place)
			}
			all[len(all)-1].lines = append(all[len(all)-1].lines, readLine(t, place, row))
		}
	}
	return all
}

func cmpOr(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// lineForms match "after 2s" and "3 x GET /path [from IP] [as "SUBJECT"] [Name: value; ...] -> 200 [waits 1s] [Name: value; ...]".
var (
	pauseForm   = regexp.MustCompile(`^after (\S+)$`)
	requestForm = regexp.MustCompile(`^(?:(\d+) x )?([A-Z]+) (\S+)(?: +from (\S+))?(?: +as "([^"]+)")?(?: +(\S.*?))? +-> (\d{3})(?: +waits (\S+))?(?: +(\S.*))?$`)
)

func readLine(t *testing.T, place, row string) line {
	t.Helper()
	row, _, _ = strings.Cut(row, "  # ")
	row = strings.TrimSpace(row)
	l := line{place: place, times: 1}
	if found := pauseForm.FindStringSubmatch(row); found != nil {
		l.pause = duration(t, place, found[1])
		return l
	}
	found := requestForm.FindStringSubmatch(row)
	if found == nil {
		t.Fatalf("%s: %q is not a request: write it like: 3 x GET /path  X-Client-Id: a  -> 200", place, row)
	}
	if found[1] != "" {
		l.times, _ = strconv.Atoi(found[1])
	}
	l.method, l.target, l.from, l.as = found[2], found[3], found[4], found[5]
	l.headers = fieldsOf(found[6])
	l.status, _ = strconv.Atoi(found[7])
	if found[8] != "" {
		l.waits = duration(t, place, found[8])
	}
	l.want = fieldsOf(found[9])
	return l
}

func duration(t *testing.T, place, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	return d
}

// fieldsOf splits "A: b | C: d".
func fieldsOf(text string) []string {
	var fields []string
	for part := range strings.SplitSeq(text, " | ") {
		if part = strings.TrimSpace(part); part != "" {
			fields = append(fields, part)
		}
	}
	return fields
}
