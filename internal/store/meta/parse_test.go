package meta

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// dumb is the slow twin of the parser: it has all bytes and splits them as strings. ok is false for
// an invalid or incomplete answer.
func dumb(input string, q asked, maxValue int) (a answer, value string, rest string, ok bool) {
	line, rest, whole := strings.Cut(input, "\n")
	if !whole || !strings.HasSuffix(line, "\r") || len(line)+1 > readBuffer {
		return a, "", "", false
	}
	line = strings.TrimSuffix(line, "\r")
	arithmetic := q.kind == Increment || q.kind == Decrement
	if strings.HasPrefix(line, "SERVER_ERROR ") ||
		arithmetic && line == "CLIENT_ERROR cannot increment or decrement non-numeric value" {
		return answer{status: Refused}, "", rest, true
	}
	meaning := map[Kind]map[string]Status{
		Get:       {"VA": OK, "EN": NotFound},
		Set:       {"HD": OK, "NF": NotFound, "EX": Exists},
		Add:       {"HD": OK, "NS": Exists},
		Increment: {"VA": OK, "NF": NotFound},
		Decrement: {"VA": OK, "NF": NotFound},
		Delete:    {"HD": OK, "NF": NotFound, "EX": Exists},
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
	if len(words) == 0 || line[0] == ' ' {
		return a, "", "", false
	}
	if a.status, ok = meaning[q.kind][words[0]]; !ok {
		return a, "", "", false
	}
	flags := words[1:]
	size := -1
	if words[0] == "VA" {
		if len(flags) == 0 {
			return a, "", "", false
		}
		if size, ok = decimal(flags[0]); !ok {
			return a, "", "", false
		}
		flags = flags[1:]
	}
	mine := false
	for _, f := range flags {
		if f[0] != 'c' && f[0] != 'O' {
			continue
		}
		n, err := strconv.ParseUint(f[1:], 10, 64)
		if err != nil {
			return a, "", "", false
		}
		if f[0] == 'c' {
			a.cas = n
		} else {
			mine = n == uint64(q.number)
		}
	}
	if !mine {
		return a, "", "", false
	}
	if size < 0 {
		return a, "", rest, true
	}
	if len(rest) < size+2 || rest[size:size+2] != "\r\n" {
		return a, "", "", false
	}
	value, rest = rest[:size], rest[size+2:]
	if !arithmetic {
		return a, value, rest, size <= maxValue
	}
	n, err := strconv.ParseUint(value, 10, 64)
	a.number = n
	return a, "", rest, err == nil
}

// decimal reads a length from a line.
func decimal(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return int(n), err == nil && n <= math.MaxInt32
}

// FuzzAnswer: for any bytes, in any pieces, the parser agrees with its twin, keeps to its bounds,
// and leaves the following bytes for the next answer.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HD c12 O7\r\n", "VA 3 c1 O7\r\nabc\r\nHD O8\r\n", "VA 2 O7\r\n42\r\n", "EN O7\r\n", "NF O7\r\n", "NS O7\r\n", "EX O7\r\n",
		"EN\r\n", "MN\r\n", "VA 0 W c18446744073709551615 O7\r\n\r\n", "VA 20 O7\r\n18446744073709551616\r\n", "ERROR\r\n",
		"SERVER_ERROR out of memory\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
		"VA -1 O7\r\n", "VA  3  c1  O7 \r\nabc\r\n", "STAT time 1\r\nEND\r\n", "HD O7\r\r\n", "VA 1 c1 O7\r\nab\r\n", "HDO7\r\n", " \r\n", "\r\n",
	} {
		for kind := range Delete + 1 {
			f.Add([]byte(seed), uint8(kind))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, kind uint8) {
		const maxValue = 1000
		q := asked{kind: Kind(kind % uint8(Delete+1)), number: 7}
		want, value, rest, ok := dumb(string(input), q, maxValue)
		for _, pieces := range []bool{false, true} {
			source := bufio.NewReaderSize(bytes.NewReader(input), readBuffer)
			if pieces {
				source = bufio.NewReaderSize(iotest.OneByteReader(bytes.NewReader(input)), readBuffer)
			}
			p, c, got := parser{r: source, maxValue: maxValue}, newCall(), answer{}
			err := p.answer(q, &got, c)
			if (err == nil) != ok {
				t.Fatalf("%q: error %v, the twin says %v", input, err, ok)
			}
			if len(c.arena) > maxValue || len(got.message) > maxMessage || strings.ContainsAny(got.message, "\r\n\x00\x1b") {
				t.Fatalf("%q: keeps %d bytes and %q", input, len(c.arena), got.message)
			}
			if err != nil {
				continue
			}
			found := string(c.arena[got.from:got.to])
			left, _ := source.Peek(source.Buffered())
			if !pieces && string(left) != rest[:min(len(rest), len(left))] {
				t.Fatalf("%q: leaves %q, the twin %q", input, left, rest)
			}
			got.message, got.from, got.to = "", 0, 0
			if got != want || found != value {
				t.Fatalf("%q: %+v %q, the twin %+v %q", input, got, found, want, value)
			}
		}
	})
}

// FuzzStats: any bytes instead of statistics are bounded, and cause no panic.
func FuzzStats(f *testing.F) {
	f.Add([]byte("STAT time 1\r\nSTAT version 1.6.18 x\r\nEND\r\n"))
	f.Add([]byte("STAT a\r\nEND\r\n"))
	f.Add([]byte("STATa b\r\nEND\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		p, c := parser{r: bufio.NewReaderSize(bytes.NewReader(input), readBuffer)}, newCall()
		err := p.answer(asked{kind: stats}, &answer{}, c)
		if len(c.stats) > maxStats || (err == nil && !bytes.Contains(input, []byte("END\r\n"))) {
			t.Errorf("%d statistics, %v", len(c.stats), err)
		}
	})
}

// TestEndlessStats: statistics without an end fail.
func TestEndlessStats(t *testing.T) {
	var b strings.Builder
	for i := range maxStats + 1 {
		fmt.Fprintf(&b, "STAT s%d 1\r\n", i)
	}
	p := parser{r: bufio.NewReader(strings.NewReader(b.String()))}
	if err := p.answer(asked{kind: stats}, &answer{}, newCall()); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}

// TestTooManyValues: the values of one Do's answers are bounded together.
func TestTooManyValues(t *testing.T) {
	c, size := newCall(), 1<<20
	for i := range 10 {
		p := parser{r: bufio.NewReader(strings.NewReader(fmt.Sprintf("VA %d O7\r\n%s\r\n", size, strings.Repeat("x", size)))), maxValue: size}
		err := p.answer(asked{kind: Get, number: 7}, &answer{}, c)
		if fits := (i+1)*size <= MaxBytes; (err == nil) != fits {
			t.Errorf("value %d: %v", i, err)
		}
	}
}

// TestEncode compares the lines that are sent.
func TestEncode(t *testing.T) {
	cases := []struct {
		request Request
		want    string
	}{
		{Request{Kind: Get, Key: "k"}, "mg k v c h O7\r\n"},
		{Request{Kind: Set, Key: "k", Value: []byte("a\r\n")}, "ms k 3 c T0 O7\r\na\r\n\r\n"},
		{Request{Kind: Set, Key: "k", CAS: 9, TTL: time.Minute}, "ms k 0 c C9 T62 O7\r\n\r\n"},
		{Request{Kind: Add, Key: "k", CAS: 9, TTL: 1}, "ms k 0 c ME T3 O7\r\n\r\n"},
		{Request{Kind: Increment, Key: "k", Delta: 2}, "ma k v D2 O7\r\n"},
		{Request{Kind: Decrement, Key: "k", Delta: 2, Create: true, Initial: 5, TTL: time.Second}, "ma k v MD D2 N3 J5 O7\r\n"},
		{Request{Kind: Delete, Key: "k"}, "md k O7\r\n"},
		{Request{Kind: Delete, Key: "k", CAS: math.MaxUint64}, "md k C18446744073709551615 O7\r\n"},
		{Request{Kind: noop}, "mn\r\n"},
		{Request{Kind: stats}, "stats\r\n"},
	}
	for _, k := range cases {
		if got := string(appendRequest(nil, &k.request, 7)); got != k.want {
			t.Errorf("%q, want %q", got, k.want)
		}
	}
}

// TestSeconds: the time to live that is sent is at least the requested one, and never above 30
// days, because the server would read that as a date.
func TestSeconds(t *testing.T) {
	for ttl, want := range map[time.Duration]uint64{
		0: 0, 1: 3, time.Second: 3, time.Second + 1: 4, MaxTTL - 3*time.Second: 30*86400 - 1, MaxTTL: 0, math.MaxInt64: 0,
	} {
		if got := seconds(ttl); got != want || got > 30*86400 {
			t.Errorf("%v: %d, want %d", ttl, got, want)
		}
	}
}

// TestQueue: calls leave the queue in the order in which they entered, through growth and wrapping.
func TestQueue(t *testing.T) {
	var q queue
	var twin []*call
	for i := range 10_000 {
		if i%7 < 4 || i < 100 {
			c := &call{start: uint64(i)}
			q.push(c)
			twin = append(twin, c)
		} else if len(twin) > 0 {
			if q.front() != twin[0] || q.pop() != twin[0] {
				t.Fatalf("step %d: out of order", i)
			}
			twin = twin[1:]
		}
		if q.n != len(twin) {
			t.Fatalf("step %d: %d in the queue, want %d", i, q.n, len(twin))
		}
	}
}
