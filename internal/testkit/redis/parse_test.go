package redis

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

// TestReply checks the parser of replies. An invalid reply must not allocate a large buffer.
func TestReply(t *testing.T) {
	for _, c := range []struct {
		wire string
		want any
		fail string
	}{
		{"+OK\r\n", "OK", ""},
		{":-3\r\n", int64(-3), ""},
		{"$4\r\na\r\nb\r\n", "a\r\nb", ""},
		{"$-1\r\n", nil, ""},
		{"*2\r\n:1\r\n*1\r\n$0\r\n\r\n", []any{int64(1), []any{""}}, ""},
		{"-ERR no\r\n", nil, "redis refuses: ERR no"},
		{"*2\r\n:1\r\n", nil, "EOF"},
		{"$5\r\nab", nil, "EOF"},
		{"HTTP/1.1 400\r\n", nil, "not a reply of Redis"},
		{"\r\n", nil, "not a reply of Redis"},
		{"$99999999999\r\n", nil, "the maximum is 67108864"},
		{strings.Repeat("*1\r\n", 100), nil, "not a reply of Redis"},
	} {
		got, err := reply(bufio.NewReader(strings.NewReader(c.wire)), 0)
		if c.fail == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%q gives %#v, %v: want %#v", c.wire, got, err, c.want)
		}
		if c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
			t.Errorf("%q gives %#v, %v: want %s", c.wire, got, err, c.fail)
		}
	}
}

// TestMember checks the parser of the lines of CLUSTER NODES.
func TestMember(t *testing.T) {
	for _, c := range []struct {
		story, line string
		port, slots int
		healthy     bool
	}{
		{"a master", "id 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460 9000", 7001, 5462, true},
		{"with a moving slot", "id 127.0.0.1:7001@17001 master - 0 0 1 connected 3 [3->-other]", 7001, 1, true},
		{"suspected", "id 127.0.0.1:7001@17001 master,fail? - 0 0 1 connected 1", 7001, 1, false},
		{"cut off", "id 127.0.0.1:7001@17001 slave other 0 0 1 disconnected", 7001, 0, false},
		{"without an address", "id :0@0 slave,noaddr other 0 0 1 connected", 0, 0, false},
		{"invalid slots", "id 127.0.0.1:7001@17001 master - 0 0 1 connected 9-99999 x -4", 7001, 0, true},
	} {
		m, err := parseMember(c.line + "\n")
		slots := 0
		for _, r := range m.slots {
			slots += r[1] - r[0] + 1
		}
		if err != nil || m.port != c.port || slots != c.slots || m.healthy != c.healthy {
			t.Errorf("%s: port %d, %d slots, healthy %v, %v", c.story, m.port, slots, m.healthy, err)
		}
	}
	for _, line := range []string{"", "id 127.0.0.1:7001", "id 127.0.0.1:7001@1 master - 0 0 late connected"} {
		if _, err := parseMember(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}
