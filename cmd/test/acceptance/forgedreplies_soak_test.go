//go:build soak

package acceptance

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

const forgedRepliesConfiguration = `version: 1
store: redis://%s
store_timeout: 250ms
max_memory: 16MiB
fallback: allow
rules:
  - {name: all, key: [header:X-Key], limits: ["1000000/s"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// errCut ends a connection after the written bytes.
var errCut = errors.New("the reply is cut")

// forgedReply writes a text and then zeros. If cut is set, it then closes the connection.
type forgedReply struct {
	text  string
	zeros int64
	cut   bool
}

func (f forgedReply) write(w io.Writer) error {
	if _, err := io.WriteString(w, f.text); err != nil {
		return err
	}
	if _, err := io.Copy(w, io.LimitReader(zeros{}, f.zeros)); err != nil {
		return err
	}
	if f.cut {
		return errCut
	}
	return nil
}

// forgedReplies has wrong lengths, surplus replies, huge replies, and replies that end early.
var forgedReplies = []forgedReply{
	{text: "$-7\r\n"},
	{text: "*-5\r\n"},
	{text: "$9223372036854775800\r\n"},
	{text: "+OK\r\n+OK\r\n"},
	{text: "*2147483647\r\n"},
	{text: "$536870912\r\n", zeros: 512<<20 + 2},
	{text: "*2147483647\r\n" + strings.Repeat(":1\r\n", 100_000)},
	{text: "%1073741823\r\n"},
	{text: "-ERR MOVED\r\n"},
	{text: strings.Repeat("*1\r\n", 5000)},
	{text: "x\r\n"},
	{text: "+" + strings.Repeat("y", 1<<20)},
	{text: "", cut: true},
	{text: "$", cut: true},
	{text: "$24\r\nabc", cut: true},
	{text: "*3\r\n$5\r\nhello\r\n", cut: true},
	{text: "+OK", cut: true},
	{text: strings.Repeat("+OK\r\n", 10_000)},
	{text: ">2\r\n+invalidate\r\n_\r\n"},
	{text: "$0\r\n\r\n$0\r\n\r\n:1\r\n"},
}

// TestSoakForgedReplies: a relay in front of a real Redis replaces replies for two minutes,
// including the first reply. The memory of the process stays bounded, and the store or the
// fallback answers every request. Afterwards the store decides again.
func TestSoakForgedReplies(t *testing.T) {
	forger := network.NewForger(t, testserver.Start(t).Addr)
	behind := httptest.NewServer(page())
	defer behind.Close()
	forger.Replace("", forgedReplies[0].write) // This replaces the reply to the first command of the first connection.
	i := start(t, fmt.Sprintf(forgedRepliesConfiguration, forger.Addr), behind.URL)
	before := peak(t, i.command.Process.Pid)
	var answered, failed atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() { askKeys(t, i, n, stop, &answered, &failed) })
	}
	random := rand.New(rand.NewPCG(3, 12))
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && !t.Failed(); {
		word := []string{"EVALSHA", "EVALSHA", "EVALSHA", ""}[random.IntN(4)]
		made := forger.Made()
		forger.Replace(word, mutate(random).write)
		eventually(t, "a reply to be replaced", func() bool { return forger.Made() > made || ended(i) })
		if ended(i) {
			t.Fatalf("the process ended: %v\n%s", i.status, i.text())
		}
		<-time.After(time.Duration(random.IntN(20)) * time.Millisecond)
	}
	close(stop)
	clients.Wait()
	fallbacks, peaked := sumOf(t, i, "headgate_fallbacks_total"), peak(t, i.command.Process.Pid)
	t.Logf("%d replies replaced, %d requests answered with 200, %d otherwise, %d by the fallback; peak %d MiB, %d MiB before",
		forger.Made(), answered.Load(), failed.Load(), fallbacks, peaked>>20, before>>20)
	switch {
	case failed.Load() > 0 || answered.Load() == 0 || fallbacks == 0:
		t.Error("not every request was answered by the store or by the fallback")
	case peaked > 160<<20:
		t.Errorf("the proxy took %d MiB, want at most 160", peaked>>20)
	}
	recovers(t, i)
}

// mutate gives a forged reply, unchanged or with one changed byte.
func mutate(random *rand.Rand) forgedReply {
	f := forgedReplies[random.IntN(len(forgedReplies))]
	if f.zeros == 0 && f.text != "" && random.IntN(3) == 0 {
		text := []byte(f.text)
		text[random.IntN(min(len(text), 40))] = "+-:$*%>~#_,(0123456789\r\nx"[random.IntN(25)]
		f.text = string(text)
	}
	return f
}

// askKeys sends requests under its own keys without pauses, until stop.
func askKeys(t *testing.T, i *instance, client int, stop <-chan struct{}, answered, failed *atomic.Int64) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: patience}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Proxy+"/", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-Key", fmt.Sprint(client, "-", n%100))
		resp, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			answered.Add(1)
		} else {
			failed.Add(1)
		}
	}
}

func ended(i *instance) bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// recovers waits until the store decides a hundred requests in a row.
func recovers(t *testing.T, i *instance) {
	t.Helper()
	eventually(t, "the store to decide again", func() bool {
		before := sumOf(t, i, "headgate_fallbacks_total")
		for range 100 {
			get(t, "http://"+i.Proxy+"/", "X-Key", "recovered")
		}
		return sumOf(t, i, "headgate_fallbacks_total") == before
	})
}

// sumOf adds up the lines of a metric.
func sumOf(t *testing.T, i *instance, name string) (sum int64) {
	t.Helper()
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int64(n)
		}
	}
	return sum
}
