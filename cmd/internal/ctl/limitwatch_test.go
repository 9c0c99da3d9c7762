package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// acts runs one function each second, between two pulses, and then ends the watch.
func acts(t *testing.T, all ...func()) context.Context {
	t.Helper()
	for i, act := range all {
		time.AfterFunc(time.Duration(i+1)*pulseEvery-pulseEvery/2, act)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(all)+1)*pulseEvery-pulseEvery/4)
	t.Cleanup(cancel)
	return ctx
}

// TestWatchLimit checks that a watch prints a line now and at each change, but not when instances
// only report. An unreachable etcd is reported once, on the separate output for errors.
func TestWatchLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holding(mail(2))
		edit := func(f func(*etcd.Entry)) func() { return func() { h.edit("mail", f) } }
		away := func(err error) func() { return func() { h.change(func() { h.fault = err }) } }
		ctx := acts(t,
			edit(func(e *etcd.Entry) { e.Members[1].Demand, e.Members[1].Seen = 7, time.Now() }),
			func() { h.limited("mail", 700) },
			edit(func(e *etcd.Entry) {
				e.Plan = &etcd.PlanInfo{Limit: 700, Per: time.Second, Instances: 2, From: time.Now().Add(2 * time.Second), Revision: 1300}
			}),
			away(errors.New("gone")), away(errors.New("gone too")), away(nil),
			edit(func(e *etcd.Entry) { e.Members = e.Members[:1] }),
			edit(func(e *etcd.Entry) {
				e.Brake = &etcd.BrakeInfo{Until: time.Now().Add(30 * time.Second), Percent: 50, Reason: "429\x1b[2J", By: "host-1\n"}
			}),
			edit(func(e *etcd.Entry) { e.Revision, e.Brake = 0, nil }),
		)
		s, out, stderr := h.session()
		ends(t, "watch", out, s.watch(ctx, "mail"), strings.ReplaceAll(`00:00:00.000Z  mail: 40000/1s (even), revision 17; in force since 0001-01-01T00:00:00Z; instances: 2
00:00:01.500Z  mail: 700/1s (even), revision 18; 40000/1s is in force since 0001-01-01T00:00:00Z; instances: 2
00:00:02.500Z  mail: 700/1s (even), revision 18; in force from 00:00:04.5Z (in 2s); instances: 2
00:00:06.500Z  mail: 700/1s (even), revision 18; in force since 00:00:04.5Z; instances: 1 (2 in the plan)
00:00:07.500Z  mail: 700/1s (even), revision 18; in force since 00:00:04.5Z; instances: 1 (2 in the plan); braked to 50% until 00:00:37.5Z: 429~[2J (by host-1\n)
00:00:08.500Z  mail: no limit; 700/1s is in force since 00:00:04.5Z; instances: 1 (2 in the plan)
`, "~", `\x1b`), "")
		if want := "headgate: explained: gone; retrying\nheadgate: etcd answers again\n"; stderr.String() != want {
			t.Errorf("it tells %q, want %q", stderr, want)
		}
	})
}

// TestWatchLimitJSON checks that the output has one document per line and only ASCII.
func TestWatchLimitJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holding(mail(1))
		ctx := acts(t,
			func() { h.edit("mail", func(e *etcd.Entry) { e.Members[0].Seen = time.Now() }) },
			func() { h.edit("mail", func(e *etcd.Entry) { e.Members[0].ID = "\u009b2J\x1b\u202e😀\x7f\xff" }) },
		)
		s, out, stderr := h.session()
		s.json = true
		if err := s.watch(ctx, "mail"); err != nil || stderr.Len() > 0 {
			t.Fatalf("the error is %v and the messages are %q", err, stderr)
		}
		var ids []string
		for line := range strings.Lines(out.String()) {
			var d limitDocument
			if err := json.Unmarshal([]byte(line), &d); err != nil || d.Limit.Count != 40_000 || len(d.Members) != 1 {
				t.Fatalf("%q: %v", line, err)
			}
			ids = append(ids, d.Members[0].ID)
		}
		if len(ids) != 2 || ids[0] != "host-0" || ids[1] != "\u009b2J\x1b\u202e😀\x7f\ufffd" {
			t.Errorf("the documents have the providers %q", ids)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
			t.Errorf("a terminal is told %q", out.String()[i:])
		}
	})
}

// TestWatchLimitEnds checks that a watch fails when etcd has never answered, and when its output
// is closed.
func TestWatchLimitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holding()
		h.fault = errors.New("away")
		s, out, _ := h.session()
		ends(t, "away", out, s.watch(t.Context(), "mail"), "", "explained: away")
		h.fault = nil
		s.out = closed{}
		if err := s.watch(t.Context(), "mail"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("with a closed output, the error is %v", err)
		}
	})
}

// closed is an output whose reader has gone.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
