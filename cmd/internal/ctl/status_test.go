package ctl

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestStatusOfPaths checks the line about the fast path. There is none before the first
// request, and for an instance that does not report paths.
func TestStatusOfPaths(t *testing.T) {
	for _, row := range []struct {
		byPath map[string]uint64
		want   string
	}{
		{nil, ""},
		{map[string]uint64{}, ""},
		{map[string]uint64{"fast": 12191, "expect": 120, "http2": 34}, "fast path  98.7 % of 12345 requests; others: expect 120, http2 34\n"},
		{map[string]uint64{"fast": 7}, "fast path  100.0 % of 7 requests\n"},
		{map[string]uint64{"fast": 99999, "size": 1}, "fast path  99.9 % of 100000 requests; others: size 1\n"},
		{map[string]uint64{"off": 5}, "fast path  0.0 % of 5 requests; others: off 5\n"},
	} {
		var out bytes.Buffer
		s := &admin.Status{Requests: admin.RequestStatus{ByPath: row.byPath}}
		if err := writeStatus(&out, s); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, rest, found := strings.Cut(out.String(), "fast path"); found {
			line, _, _ := strings.Cut(rest, "\n")
			got = "fast path" + line + "\n"
		}
		if got != row.want {
			t.Errorf("%v: got %q, want %q in\n%s", row.byPath, got, row.want, &out)
		}
	}
}

// TestStatusOfReceivers checks the lines about receivers of statsd. There are none without receivers.
func TestStatusOfReceivers(t *testing.T) {
	for want, all := range map[string][]admin.ReceiverStatus{
		"": nil,
		"STATSD    NETWORK  DROPPED LINES  ERROR\nh:8125    tcp      12             dial: refused\n[::1]:81  udp      0              -\n": {
			{Network: "tcp", Address: "h:8125", DroppedLines: 12, Error: "dial: refused"}, {Network: "udp", Address: "[::1]:81"},
		},
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, &admin.Status{Receivers: all}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "STATSD") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant in it\n%s", text, want)
		}
	}
}
