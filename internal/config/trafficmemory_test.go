package config

import (
	"strings"
	"testing"
)

// TestBoundsAboveTheMachine: connections above the default raise the bound, and a bound above the memory of the machine has a note.
func TestBoundsAboveTheMachine(t *testing.T) {
	const machine = 4 << 30
	for _, c := range []struct{ sections, want string }{
		{"proxy: {upstream: 'http://127.0.0.1:1'}", ""},
		{
			"proxy: {upstream: 'http://127.0.0.1:1', max_connections: 1048576}", "memory of at most 107.7GiB is more than the 4GiB of " +
				"this machine: on such a machine, connections are closed near its memory; set proxy.max_traffic_memory",
		},
		{"proxy: {upstream: 'http://127.0.0.1:1', max_connections: 1048576, max_traffic_memory: 1GiB}", ""},
		{"server: {grpc: '127.0.0.1:0'}", ""},
		{"server: {grpc: {address: '127.0.0.1:0', max_connections: 1048576}}", "memory of the server of at most "},
	} {
		parsed, err := Parse("test.yaml", []byte("version: 1\nrules: []\n"+c.sections+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(parsed.MemoryWarnings(machine), "\n")
		if (notes == "") != (c.want == "") || !strings.HasPrefix(notes, c.want) {
			t.Errorf("%s: got %q, want %q", c.sections, notes, c.want)
		}
		if notes := parsed.MemoryWarnings(0); len(notes) > 0 {
			t.Errorf("%s: without a known machine: %q", c.sections, notes)
		}
	}
}
