//go:build soak

package acceptance

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/lease/client"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/lease"
)

const (
	// treeCapacity is what the holders share, in units a second, and treeSafe is the safe amount of each.
	treeCapacity, treeSafe = 1000, 1
	treeHolders, treeAsks  = 500, 3000 // holders, and calls a second of all of them

	treeNode = `version: 1
server:
  grpc: {address: %q, auth: token}
  http: off
  callers: [{name: server, tokens: [%q], scopes: [lease]}, {name: web, tokens: [%q], scopes: [lease]}]
lease: {holders: {server: {server: true}}, length: %s, refresh: 500ms, %s}
`
)

// bigTree is a root, two parents and four leaves. A link is between the second leaf and its parent.
type bigTree struct {
	t     *testing.T
	files [7]string // the root, the parents, the leaves
	at    [7]string
	runs  [7]*instance
	link  *network.Link
}

func newBigTree(t *testing.T, mode client.OnLoss) *bigTree {
	t.Helper()
	b := &bigTree{t: t}
	for i := range b.at {
		b.at[i] = freeAddress(t)
	}
	token := file(t, "server")
	for i := range b.files {
		length, rest := "6s", fmt.Sprintf("resources: [{match: \"db/*\", capacity: %d/s, safe: %d/s}]", treeCapacity, treeSafe)
		if i > 0 {
			up := b.at[0]
			length = "5s"
			if i > 2 {
				up, length = b.at[1+(i-3)/2], "4s"
			}
			if i == 4 {
				b.link = network.New(t, up)
				up = b.link.Addr
			}
			rest = fmt.Sprintf("servers: [%q], token_file: %q, on_loss: %s", up, token, mode)
		}
		b.files[i] = file(t, fmt.Sprintf(treeNode, b.at[i], tokenDigest("server"), tokenDigest("web"), length, rest)+adminAnywhere)
		b.start(i)
	}
	return b
}

func (b *bigTree) start(i int) { b.runs[i] = launchServer(b.t, b.files[i]) }

// end ends a server by a signal, and starts it again after a time.
func (b *bigTree) end(i int, by syscall.Signal, away time.Duration) {
	b.t.Helper()
	if err := b.runs[i].command.Process.Signal(by); err != nil {
		b.t.Fatal(err)
	}
	<-b.runs[i].ended
	<-time.After(away)
	b.start(i)
}

// spenders are holders that spend their leases.
type spenders struct {
	pacers  []*pace.Pacer
	clients []*client.Client
	stop    chan struct{}
	ended   sync.WaitGroup

	mu    sync.Mutex // Guards spent.
	spent []time.Time
}

// spend starts all holders, a quarter of them at each leaf. Each has a client and a connection of its own.
func (b *bigTree) spend(mode client.OnLoss) *spenders {
	b.t.Helper()
	s := &spenders{stop: make(chan struct{})}
	for i := range treeHolders {
		s.add(b.t, b.at[3+i%4], mode)
	}
	s.ended.Go(func() { s.call(func() int64 { return treeAsks }) })
	return s
}

// add starts a holder below a leaf.
func (s *spenders) add(t *testing.T, at string, mode client.OnLoss) {
	t.Helper()
	k, err := client.New(client.Config{Servers: []string{at}, Token: "web", OnLoss: mode})
	if err != nil {
		t.Fatal(err)
	}
	source, err := lease.New(k, "db/orders")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pace.New(pace.Config{Provider: "orders", Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.pacers, s.clients = append(s.pacers, p), append(s.clients, k)
}

// call makes calls of random holders, at a rate by second, until the end.
func (s *spenders) call(rate func() int64) {
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, due := time.Now(), 0.0
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		due += now.Sub(last).Seconds() * float64(rate())
		for last = now; due >= 1; due-- {
			s.pacers[rand.IntN(len(s.pacers))].AcquireFunc(1, time.Second, func(_ headgate.Instant, err error) {
				if err == nil {
					s.mu.Lock()
					s.spent = append(s.spent, time.Now())
					s.mu.Unlock()
				}
			})
		}
	}
}

func (s *spenders) close() {
	close(s.stop)
	s.ended.Wait()
	for i, p := range s.pacers {
		p.Close()
		_ = s.clients[i].Close()
	}
}

// worst returns the largest number of units in any second between two times.
func (s *spenders) worst(from, to time.Time) (worst int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	for i, at := range s.spent {
		for at.Sub(s.spent[first]) > time.Second {
			first++
		}
		if !at.Before(from) && at.Before(to) {
			worst = max(worst, i-first+1)
		}
	}
	return worst
}

// bySecond counts the units of each second from a time on.
func (s *spenders) bySecond(from time.Time) (units []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.spent {
		if at.Before(from) {
			continue
		}
		second := int(at.Sub(from) / time.Second)
		for second >= len(units) {
			units = append(units, 0)
		}
		units[second]++
	}
	return units
}

// sort puts the units in order.
func (s *spenders) sort() { slices.SortFunc(s.spent, time.Time.Compare) }

// lastSecond counts the units of the last second.
func (s *spenders) lastSecond() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.spent) - 1; i >= 0 && time.Since(s.spent[i]) < time.Second; i-- {
		n++
	}
	return n
}

// TestSoakTreeOfProcesses has 500 holders below four leaves. Servers are killed, partitioned and restarted. In each mode of on_loss,
// the units that are spent in any second stay within the bound of the mode, and all of the capacity is used again after each event.
// The folder of artifacts gets a plot for each mode.
func TestSoakTreeOfProcesses(t *testing.T) {
	for _, mode := range []client.OnLoss{client.Pessimistic, client.Safe, client.Optimistic} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBigTree(t, mode)
			s := b.spend(mode)
			defer s.close()
			began := time.Now()
			whole := func(after string) {
				t.Helper()
				eventually(t, "the use of the capacity after "+after, func() bool {
					n := s.lastSecond()
					return n > treeCapacity*9/10 && n < treeCapacity*11/10+treeHolders
				})
				t.Logf("%5.1f s: all is used after %s", time.Since(began).Seconds(), after)
				<-time.After(3 * time.Second)
			}
			whole("the start")
			from := time.Now()
			b.end(3, syscall.SIGKILL, 7*time.Second)
			whole("kill -9 of a leaf")
			b.end(1, syscall.SIGKILL, 8*time.Second)
			whole("kill -9 of a parent")
			b.end(0, syscall.SIGKILL, 10*time.Second)
			whole("kill -9 of the root")
			b.link.HalfOpen()
			<-time.After(8 * time.Second)
			b.link.Heal()
			whole("the partition of a leaf")
			for i := range b.runs {
				b.end(6-i, syscall.SIGTERM, 0)
				whole(fmt.Sprint("the restart of server ", 6-i))
			}
			most := treeCapacity*11/10 + treeHolders
			switch mode {
			case client.Pessimistic: // Nothing comes on top.
			case client.Safe:
				most += treeHolders * treeSafe * 11 / 10
			case client.Optimistic:
				most = treeAsks * 2 // What is wanted. Waiters of the second before are on top.
			}
			worst := s.worst(from, time.Now())
			if worst > most {
				t.Errorf("%d units in a second, want at most %d", worst, most)
			}
			units := s.bySecond(began)
			t.Logf("%d units in the worst second, at most %d; by second: %v", worst, most, units)
			plot(t, mode.String(), units, most)
		})
	}
}

// plot draws the units of each second, and the bound.
func plot(t *testing.T, mode string, units []int, most int) {
	t.Helper()
	const width, height, top = 5, 400, 3500
	y := func(n int) int { return height - n*height/top }
	var points strings.Builder
	for second, n := range units {
		fmt.Fprintf(&points, "%d,%d ", second*width, y(n))
	}
	text := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d"><rect width="%[1]d" height="%[2]d" fill="white"/>`+
		`<path d="M0 %[3]dH%[1]dM0 %[4]dH%[1]d" stroke="gray" stroke-dasharray="4"/><text x="5" y="%[3]d">%[6]d</text><text x="5" y="%[4]d">%[7]d</text>`+
		`<polyline points="%[5]s" fill="none" stroke="black"/></svg>`, len(units)*width, height, y(most), y(treeCapacity), points.String(), most, treeCapacity)
	path := filepath.Join(t.ArtifactDir(), "on_loss_"+mode+".svg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	t.Log("the plot is", path)
}
