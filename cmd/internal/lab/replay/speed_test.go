package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/store/memory"
)

// sentRequest is a request for the guard alone.
type sentRequest struct {
	at  headgate.Instant
	req headgate.Request
}

// manyLines repeats the log of tests, each time four days later, as combined lines and as the JSON of Headgate.
func manyLines(tb testing.TB, times int) (combined, object []byte, requests []sentRequest) {
	tb.Helper()
	file, err := os.Open(accessLog)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := logs.New(bytes.NewReader(text), logs.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var l logs.Line
	for err = r.Next(&l); err == nil; err = r.Next(&l) {
		if l.Skip != logs.Request {
			continue
		}
		for n := range times {
			at := l.Arrival.Add(time.Duration(n) * 96 * time.Hour)
			requests = append(requests, sentRequest{at, headgate.Request{
				Method: string(l.Method), Path: string(l.Path), IP: netip.MustParseAddr(string(l.Client)),
			}})
		}
	}
	if !errors.Is(err, io.EOF) {
		tb.Fatal(err)
	}
	slices.SortStableFunc(requests, func(a, b sentRequest) int { return int(a.at - b.at) })
	var c, o bytes.Buffer
	for i := range requests {
		r := &requests[i]
		at := r.at.Time()
		fmt.Fprintf(&c, "%s - - [%s] %q 200 1234 \"-\" \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\"\n", r.req.IP,
			at.Format("02/Jan/2006:15:04:05 -0700"), r.req.Method+" "+r.req.Path+" HTTP/1.1")
		uri, err := json.Marshal(r.req.Path)
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&o, `{"time":%q,"remote_ip":%q,"request_id":"0b3c9e0f-6f7d-4f52-a0ff-3d1f4a5b6c7d","method":%q,"host":"example.com","uri":%s,`+
			`"proto":"HTTP/1.1","status":200,"bytes":1234,"duration":0.001234,"user_agent":"Mozilla/5.0 (X11; Linux x86_64)",`+
			`"verdict":"allow","reason":"within_limit","rule":"perip"}`+"\n",
			at.Add(time.Duration(i%1000)*time.Microsecond).Format("2006-01-02T15:04:05.000000Z"), r.req.IP, r.req.Method, uri)
	}
	return c.Bytes(), o.Bytes(), requests
}

// fromBytes is a replay of one log in memory.
func fromBytes(c *config.Config, text []byte) replay.Options {
	return replay.Options{
		Name: "headgate.yaml", Config: c, Files: []string{"-"},
		Open: func(_ string, o logs.Options) (*logs.Reader, error) { return logs.New(bytes.NewReader(text), o) },
	}
}

// guardAlone decides requests with the guard, and nothing else.
func guardAlone(tb testing.TB, c *config.Config, requests []sentRequest) (refused int) {
	tb.Helper()
	now := requests[0].at
	clock := func() headgate.Instant { return now }
	store, err := memory.New(memory.Config{MaxMemory: c.MaxMemory, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(guard.Config{Rules: c.Rules, Store: store, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, ticket := tb.Context(), guard.Ticket{Answer: new(guard.Answer)}
	for i := range requests {
		now = requests[i].at
		req := requests[i].req
		answer := ticket.Answer
		if ticket.Answer = answer; answer == nil {
			ticket.Answer = new(guard.Answer)
		}
		if err := g.Admit(ctx, &req, &ticket); err != nil {
			tb.Fatal(err)
		}
		if ticket.Answer.Verdict == headgate.Deny {
			refused++
		}
		answer = ticket.Answer
		ticket.Forward()
		ticket.Answer = answer
	}
	return refused
}

// cpuTime is the time that this process has used on all cores, so that other processes and further cores do not count.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkReplay compares a replay with the guard alone on the same requests, in turns. The metrics are the time of a replay in times
// of the guard: of combined lines, which have whole seconds and are decided twice, of the same without limits below a minute, and of JSON.
func BenchmarkReplay(b *testing.B) {
	combined, object, requests := manyLines(b, 20)
	three, minute := parse(b, threeRules), parse(b, strings.NewReplacer(`, "5/1s"`, `, "300/1h"`, "3/10s", "18/m", "100/1s", "6000/m").Replace(threeRules))
	fastest := map[string]time.Duration{}
	measure := func(name string, f func()) {
		began := cpuTime(b)
		f()
		if d := cpuTime(b) - began; fastest[name] == 0 || d < fastest[name] {
			fastest[name] = d
		}
	}
	run := func(o replay.Options) {
		if _, err := replay.Run(b.Context(), &o); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		measure("guard", func() { guardAlone(b, three, requests) })
		measure("combined", func() { run(fromBytes(three, combined)) })
		measure("guard of minutes", func() { guardAlone(b, minute, requests) })
		measure("combined of minutes", func() { run(fromBytes(minute, combined)) })
		measure("json", func() { run(fromBytes(three, object)) })
	}
	b.ReportMetric(float64(fastest["guard"])/float64(len(requests)), "ns/guard")
	b.ReportMetric(float64(fastest["combined"])/float64(fastest["guard"]), "x-combined")
	b.ReportMetric(float64(fastest["combined of minutes"])/float64(fastest["guard of minutes"]), "x-combined-once")
	b.ReportMetric(float64(fastest["json"])/float64(fastest["guard"]), "x-json")
	b.ReportMetric(0, "ns/op")
}
