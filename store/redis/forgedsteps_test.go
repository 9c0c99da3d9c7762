package redis_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/redis"
)

const (
	oneShard = "*1\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n%4\r\n$4\r\nport\r\n:1\r\n" +
		"$8\r\nendpoint\r\n$3\r\n::1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$6\r\nhealth\r\n$6\r\nonline\r\n"
	switched = ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$9\r\nm ::1 1 1\r\n"
)

// steps are well-formed replies on which the client library panics, by the command that they
// answer. The client sends these commands before a decision.
var steps = []struct {
	kind          redis.Kind
	answer, reply string
}{
	{redis.Single, "EVALSHA", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"},
	{redis.Cluster, "EVALSHA", "-MOVED\r\n"},
	{redis.Cluster, "EVALSHA", "-ERR ASK 1\r\n"},
	{redis.Cluster, "CLUSTER", "*1\r\n%2147483647\r\n"},
	{redis.Sentinel, "ROLE", "*0\r\n"},
	{redis.Sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", "*1\r\n$3\r\n::1\r\n"},
	{redis.Sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", "*0\r\n"},
	{redis.Sentinel, "SUBSCRIBE", "-QUEUED\r\n"},
	{redis.Sentinel, "SUBSCRIBE", "+OK\r\n+OK\r\n"},
	{redis.Sentinel, "UNSUBSCRIBE", "+OK\r\n+OK\r\n"},
	{redis.Sentinel, "EVENT", switched},
	{redis.Sentinel, "EVENT", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"},
	{redis.Sentinel, "EVENT", ">3\r\n$7\r\nmessage\r\n$9\r\n+sentinel\r\n:1\r\n"},
}

// TestForgedSteps: no reply to the client library's own commands ends the process. The Store
// decides when its server sends correct replies again.
func TestForgedSteps(t *testing.T) {
	for _, step := range steps {
		t.Run(fmt.Sprintf("%s/%s/%.8q", step.kind, step.answer, step.reply), func(t *testing.T) {
			forged := &forgedServer{answer: step.answer, reply: step.reply}
			o := rueidis.ClientOption{InitAddress: []string{"[::1]:1"}, DialCtxFn: forged.dial, ConnWriteTimeout: 100 * time.Millisecond}
			if step.kind == redis.Sentinel {
				o.Sentinel.MasterSet = "m"
			}
			store := open(t, redis.Config{Kind: step.kind, Client: o, Timeout: 100 * time.Millisecond})
			id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
			until(t, "a forged reply", func() bool {
				_, _ = take(store, id, "k", 20*time.Millisecond)
				return forged.sent.Load() > 0
			})
			forged.honest.Store(true)
			until(t, "a decision", func() bool { _, err := take(store, id, "k", patience); return err == nil })
		})
	}
}

// forgedServer answers as a server of a given kind, except for one command.
type forgedServer struct {
	answer, reply string
	honest        atomic.Bool
	sent          atomic.Int64
}

func (s *forgedServer) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	near, far := net.Pipe()
	go s.serve(far)
	return near, nil
}

func (s *forgedServer) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.say(args)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	var args []string
	for n := -1; n != len(args); {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n = size
			continue
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:size]))
	}
	return args, nil
}

func (s *forgedServer) say(args []string) string {
	word := args[0]
	if word == "SENTINEL" {
		word += " " + args[1]
	}
	if word == s.answer && !s.honest.Load() {
		s.sent.Add(1)
		return s.reply
	}
	switch word {
	case "HELLO":
		return "%2\r\n$7\r\nversion\r\n$1\r\n8\r\n$5\r\nproto\r\n:3\r\n"
	case "PING":
		return "+PONG\r\n"
	case "CLUSTER":
		if args[1] == "SLOTS" {
			return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$3\r\n::1\r\n:1\r\n"
		}
		return oneShard
	case "ROLE":
		return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	case "SENTINEL SENTINELS":
		return "*0\r\n"
	case "SENTINEL GET-MASTER-ADDR-BY-NAME":
		return "*2\r\n$3\r\n::1\r\n$1\r\n1\r\n"
	case "SUBSCRIBE":
		return s.confirm(args[1:])
	case "UNSUBSCRIBE":
		return ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n"
	case "EVALSHA": // The reply of a full bucket, one second after 1970.
		return "$24\r\n\x00\x00\x00\x00\x80\x84\x2e\x41" + strings.Repeat("\x00", 16) + "\r\n"
	}
	return "+OK\r\n"
}

func (s *forgedServer) confirm(channels []string) string {
	all := ""
	for i, channel := range channels {
		all += fmt.Sprintf(">3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, i+1)
	}
	if s.answer == "EVENT" && !s.honest.Load() {
		s.sent.Add(1)
		all += s.reply
	}
	return all
}
