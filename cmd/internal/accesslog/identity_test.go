package accesslog

import (
	"net/netip"
	"strings"
	"testing"
)

// TestIdentity: the parts of a line stand in two objects, by their form, and a combined line has none of them.
func TestIdentity(t *testing.T) {
	e := &Entry{
		Time: noon, Method: "GET", URI: "/", Proto: "HTTP/1.1", Status: 200,
		UserIP: netip.MustParseAddr("198.51.100.7"), Region: "NL", Cost: 5,
	}
	for _, c := range []struct {
		parts []Part
		want  string
	}{
		{nil, ``},
		{[]Part{{Name: "header:A", Text: []byte(`a"b`)}}, `,"identity":{"header:A":"a\"b"}`},
		{[]Part{{Name: "jwt:sub", Hashed: true, Absent: true}}, `,"identity_hash":{"jwt:sub":null}`},
		{
			[]Part{{Name: "header:A", Text: []byte("00"), Hashed: true}, {Name: "header:B", Text: []byte("b")}, {Name: "ip", Text: []byte("11"), Hashed: true}},
			`,"identity":{"header:B":"b"},"identity_hash":{"header:A":"00","ip":"11"}`,
		},
	} {
		e.Identity = c.parts
		want := `,"duration":0.000000,"user_ip":"198.51.100.7","region":"NL","cost":5` + c.want + "}\n"
		if got := line(JSON, e); !strings.HasSuffix(got, want) {
			t.Errorf("the line is %swant it to end in %s", got, want)
		}
		if got := line(Combined, e); strings.ContainsAny(got, "{") || strings.Contains(got, "198.51.100.7") {
			t.Errorf("the combined line is %s", got)
		}
	}
}

// TestIdentityAllocatesNothing formats a line with parts.
func TestIdentityAllocatesNothing(t *testing.T) {
	e := complete()
	e.Identity = []Part{{Name: "header:A", Text: []byte("a")}, {Name: "jwt:sub", Text: []byte("00"), Hashed: true}}
	b := make([]byte, 0, MaxLine)
	if n := testing.AllocsPerRun(100, func() { b = JSON.append(b[:0], e, "2026-03-01T12:00:00") }); n > 0 {
		t.Errorf("a line takes %v allocations", n)
	}
}
