package resp

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// TestRedisCLI runs the examples of docs/redis-protocol.md with redis-cli.
func TestRedisCLI(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/redis-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	const example = "(integer) 0\n2) (integer) 16\n3) (integer) 15\n4) (integer) -1\n5) (integer) 2\n"
	if !strings.Contains(string(doc), "redis-cli -p 6380 CL.THROTTLE user123 15 30 60\n1) "+example) {
		t.Error("the documentation has another example")
	}
	_, at := startServer(t, new(clock), 0)
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{"CL.THROTTLE user123 15 30 60", "1) " + example},
		{"-3 HG.DECIDE ip=192.0.2.1", "1# \"verdict\" => \"allow\"\n"},
		{"-3 PING", "PONG\n"},
		{"COMMAND COUNT", "(integer) 13\n"},
		{"INFO", "# Server"},
	} {
		words := append([]string{"--no-raw", "-p", port}, strings.Fields(c.command)...)
		out, err := exec.CommandContext(t.Context(), "redis-cli", words...).CombinedOutput()
		if text := strings.TrimLeft(string(out), " \""); err != nil || !strings.HasPrefix(text, c.want) {
			t.Errorf("redis-cli %s prints %q (%v), want %q", c.command, out, err, c.want)
		}
	}
}

// TestRueidis uses RESP3, and several commands at a time.
func TestRueidis(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at}, DisableCache: true, ClientName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all rueidis.Commands
	for range 3 {
		all = append(all, client.B().Arbitrary("CL.THROTTLE").Keys("k").Args("1", "1", "60").Build())
	}
	for i, answer := range client.DoMulti(t.Context(), all...) {
		got, err := answer.AsIntSlice()
		if err != nil || got[0] != int64(i/2) || got[1] != 2 {
			t.Errorf("answer %d is %v, %v", i, got, err)
		}
	}
	fields, err := client.Do(t.Context(), client.B().Arbitrary("HG.DECIDE").Args("ip=192.0.2.1").Build()).AsMap()
	if verdict := fields["verdict"]; err != nil || verdict.String() == "" {
		t.Errorf("HG.DECIDE: %v, %v", fields, err)
	}
}
