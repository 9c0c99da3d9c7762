package replay_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay"
)

// combinedLine is a line of a client at a second after noon.
func combinedLine(client string, second int, target string) string {
	at := time.Date(2026, time.March, 1, 12, 0, second, 0, time.UTC).Format("02/Jan/2006:15:04:05 -0700")
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 12 \"-\" \"-\"\n", client, at, target)
}

func unzipped(tb testing.TB) []byte {
	tb.Helper()
	file, err := os.Open(accessLog)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// TestShuffled: lines that are moved by up to five minutes, in the order of each second, give the same report. So do two runs.
func TestShuffled(t *testing.T) {
	t.Parallel()
	text := unzipped(t)
	random := rand.New(rand.NewPCG(1, 2))
	type moved struct {
		line string
		to   time.Time
	}
	var lines []moved
	delays := map[string]time.Duration{} // of a second, so that its lines keep their order
	for line := range strings.Lines(string(text)) {
		stamp, _, _ := strings.Cut(line[strings.IndexByte(line, '[')+1:], "]")
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := delays[stamp]; !known {
			delays[stamp] = time.Duration(random.Int64N(int64(5 * time.Minute)))
		}
		lines = append(lines, moved{line, at.Add(delays[stamp])})
	}
	slices.SortStableFunc(lines, func(a, b moved) int { return cmp.Compare(a.to.UnixNano(), b.to.UnixNano()) })
	var shuffled bytes.Buffer
	for _, l := range lines {
		shuffled.WriteString(l.line)
	}
	report := func(text []byte) string {
		o := fromBytes(parse(t, threeRules), text)
		o.Within = replay.Together
		r := replayed(t, o)
		r.Files, r.Malformed, r.Notes = nil, nil, nil // They name lines and steps back.
		return written(t, r)
	}
	want := report(text)
	if got := report(shuffled.Bytes()); got != want {
		t.Errorf("shuffled lines give\n%s\nwant\n%s", got, want)
	}
	if got := report(text); got != want {
		t.Error("two runs differ")
	}
}

func written(tb testing.TB, r *replay.Report) string {
	tb.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// TestFilesFollowEachOther: rotated logs in any order, and compressed, give the report of the whole log.
func TestFilesFollowEachOther(t *testing.T) {
	t.Parallel()
	text := unzipped(t)
	middle := bytes.IndexByte(text[len(text)/2:], '\n') + len(text)/2 + 1
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(text[:middle])
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{"access.log": text[middle:], "access.log.1.gz": zipped.Bytes()}
	o := fromBytes(parse(t, threeRules), nil)
	o.Files = []string{"access.log", "access.log.1.gz"}
	o.Open = func(name string, settings logs.Options) (*logs.Reader, error) {
		return logs.New(bytes.NewReader(parts[name]), settings)
	}
	got, want := replayed(t, o), replayed(t, fromBytes(parse(t, threeRules), text))
	if got.Refused != want.Refused || got.Requests != want.Requests || got.Order.Late != 0 {
		t.Errorf("two files give %d of %d, one gives %d of %d", got.Refused, got.Requests, want.Refused, want.Requests)
	}
}

// TestSeveralRulesRefuse: a request that two rules refuse counts for the first, and is counted as such.
func TestSeveralRulesRefuse(t *testing.T) {
	t.Parallel()
	rules := `rules:
  - {name: first, key: [ip], algorithm: sliding_log, limits: ["1/m"]}
  - {name: second, key: [all], algorithm: sliding_log, limits: ["2/m"]}
  - {name: watched, key: [ip], algorithm: sliding_log, limits: ["0/m"], mode: shadow}
`
	text := combinedLine("192.0.2.1", 0, "/") + combinedLine("192.0.2.1", 1, "/") + // the first refuses
		combinedLine("192.0.2.2", 2, "/") + combinedLine("192.0.2.3", 3, "/") + // the second refuses
		combinedLine("192.0.2.1", 4, "/") // both refuse
	r := replayed(t, fromBytes(parse(t, rules), []byte(text)))
	got := fmt.Sprint(r.Requests, r.Passed, r.Refused, r.Several)
	for i := range r.Rules {
		got += fmt.Sprint(" ", r.Rules[i].Name, r.Rules[i].Refused, r.Rules[i].First, r.Rules[i].Keys)
	}
	if want := "5 2 3 1 first2 2 {3 1} second2 1 {1 1} watched5 0 {3 3}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAgainst: a comparison is that of two runs, request by request.
func TestAgainst(t *testing.T) {
	t.Parallel()
	const strict = "rules: [{name: perip, key: [ip], limits: [10/m], algorithm: sliding_log}]"
	const lax = "rules: [{name: perip, key: [ip], limits: [5/10s], algorithm: token_bucket}]"
	refused := func(rules string) (lines map[int64]bool, total int64) {
		lines = map[int64]bool{}
		r := replayed(t, replay.Options{Config: parse(t, rules), Refused: func(r *replay.Refusal) error {
			lines[r.Line] = true
			return nil
		}})
		return lines, r.Refused
	}
	first, a := refused(strict)
	second, b := refused(lax)
	want := replay.Comparison{}
	for line := range first {
		if second[line] {
			want.BothRefuse++
		} else {
			want.OnlyFirst++
		}
	}
	want.OnlySecond = int64(len(second)) - want.BothRefuse
	want.BothPass = 9999 - want.BothRefuse - want.OnlyFirst - want.OnlySecond
	r := replayed(t, replay.Options{Config: parse(t, strict), Against: parse(t, lax), AgainstName: "lax.yaml"})
	got := replay.Comparison{BothPass: r.Against.BothPass, OnlyFirst: r.Against.OnlyFirst, OnlySecond: r.Against.OnlySecond, BothRefuse: r.Against.BothRefuse}
	if fmt.Sprint(got) != fmt.Sprint(want) || got.OnlyFirst+got.BothRefuse != a || got.OnlySecond+got.BothRefuse != b || r.Refused != a {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(r.Against.Keys) == 0 || r.Against.Keys[0].Requests == 0 || !strings.HasPrefix(r.Against.Keys[0].Key, "perip ip=") {
		t.Errorf("the keys that change are %+v", r.Against.Keys)
	}
}

// TestSchema: a report has the fields that the schema requires, and no others.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := replay.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	report := replayed(t, replay.Options{Config: parse(t, threeRules), Against: parse(t, threeRules), AgainstName: "same.yaml"})
	if err := json.Unmarshal([]byte(written(t, report)), &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if schema.Properties[name] == nil {
			t.Errorf("the schema lacks %s", name)
		}
	}
	for _, name := range schema.Required {
		if _, found := fields[name]; !found {
			t.Errorf("the report lacks %s", name)
		}
	}
}

// TestPartial: a replay that is stopped reports what it has read.
func TestPartial(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := fromBytes(parse(t, threeRules), bytes.Repeat(unzipped(t), 3))
	o.Progress = func(p replay.Progress) {
		if p.Lines > 10_000 {
			cancel()
		}
	}
	r, err := replay.Run(ctx, &o)
	if err != nil || !r.Partial || r.Requests < 10_000 || r.Requests > 20_000 {
		t.Fatalf("got %+v, %v", r, err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), "PARTIAL") {
		t.Errorf("the text is %.100q, %v", b.String(), err)
	}
}

// TestDocument: the example of the document has the output that it shows.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/choosing-limits.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	rules, found := strings.CutPrefix(blocks[1], "yaml\nversion: 1\n")
	shown, replays := strings.CutPrefix(blocks[3], "\n$ headgate replay access.log --suggest 1%\n")
	if !found || !replays {
		t.Fatalf("the page begins with %q and %q", blocks[1], blocks[3])
	}
	var b strings.Builder
	if err := replayed(t, replay.Options{Config: parse(t, rules), Suggest: 1}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	rest := b.String()
	for part := range strings.SplitSeq(shown, "...\n") {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("the output is\n%s\nwithout\n%s", rest, part)
		}
		rest = after
	}
}
