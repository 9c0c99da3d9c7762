package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// MemoryName is the name of the scene of memory and start.
const MemoryName = "memory and start"

// MemoryEffort is the size of the scene.
type MemoryEffort struct{ Starts, Connections, Rules, Keys int }

// Memory is what one proxy uses. Sizes are the proportional set sizes of the process and its workers, in bytes: a page that
// several processes have counts once.
type Memory struct {
	Name string `json:"name"`
	// Idle is the memory after the start and one request, with one rule.
	Idle float64 `json:"idle"`
	// IdleFiles is the part of Idle that is pages of files, such as the program itself, which the kernel can drop.
	IdleFiles float64 `json:"idle_files"`
	// PerConnection is what an idle connection adds after one request on it.
	PerConnection float64 `json:"per_connection"`
	// PerRules is what MemoryEffort.Rules further rules add, and PerKeys what MemoryEffort.Keys keys of one rule add.
	PerRules float64 `json:"per_rules"`
	PerKeys  float64 `json:"per_keys"`
	// Start and StartRules are the times from the start of the process to the first answer, with one rule and with further ones:
	// the medians.
	Start      time.Duration `json:"start_ns"`
	StartRules time.Duration `json:"start_rules_ns"`
	// StartCPU is the processor time until the first answer with further rules, which a busy machine changes less; the median.
	StartCPU time.Duration `json:"start_cpu_ns"`
}

// settle is how long a proxy is left alone before its memory is read.
const settle = time.Second

// MeasureMemory measures the memory and the start of Headgate, nginx and HAProxy.
func MeasureMemory(ctx context.Context, p *Programs, e MemoryEffort) ([]Memory, error) {
	upstream, err := start(ctx, "upstream", "", p.dir, filepath.Join(p.dir, "upstream"))
	if err != nil {
		return nil, err
	}
	defer upstream.stop()
	var all []Memory
	for _, s := range []side{
		{name: "headgate", kind: contest.Ours, server: headgate(), settings: settings{Rules: 1, Plane: "fast"}},
		{name: "nginx", kind: contest.Peer, server: nginx(), settings: settings{Rules: 1}},
		{name: "HAProxy", kind: contest.Peer, server: haproxy(), settings: settings{Rules: 1}},
	} {
		m := memoryRun{programs: p, upstream: strings.TrimPrefix(upstream.url, "http://"), effort: e, side: s, to: Memory{Name: s.name}}
		if err := m.measure(ctx); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", MemoryName, s.name, err)
		}
		all = append(all, m.to)
	}
	return all, nil
}

type memoryRun struct {
	programs *Programs
	upstream string
	effort   MemoryEffort
	side     side
	to       Memory
}

func (m *memoryRun) measure(ctx context.Context) error {
	m.side.settings.Keys = 2 * m.effort.Keys
	var one, many, processor []time.Duration
	var idle, withRules, files []float64
	for range m.effort.Starts {
		err := m.with(ctx, 0, &one, nil, func(_ *process, before use) error {
			idle, files = append(idle, before.all), append(files, before.files)
			return nil
		})
		if err != nil {
			return err
		}
		err = m.with(ctx, m.effort.Rules, &many, &processor, func(_ *process, before use) error {
			withRules = append(withRules, before.all)
			return nil
		})
		if err != nil {
			return err
		}
	}
	m.to.Idle, m.to.IdleFiles, m.to.PerRules = middle(idle), middle(files), middle(withRules)-middle(idle)
	m.to.Start, m.to.StartRules, m.to.StartCPU = middle(one), middle(many), middle(processor)
	return m.grow(ctx)
}

func middle[T float64 | time.Duration](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// with starts the side, sends a request, and calls measure with its memory a second later.
func (m *memoryRun) with(ctx context.Context, rules int, starts, processor *[]time.Duration, measure func(*process, use) error) error {
	s := m.side
	s.settings.OtherRules = rules
	began := time.Now()
	p, err := m.programs.launch(ctx, s, m.upstream)
	if err != nil {
		return err
	}
	defer p.stop()
	for err = p.first(ctx); err != nil; err = p.first(ctx) {
		select {
		case <-p.ended:
			return fmt.Errorf("%w\nThe log of the process ends with:\n%s", errEnded, p.logged())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > grace {
			return fmt.Errorf("no answer within %v: %w", grace, err)
		}
	}
	if starts != nil {
		*starts = append(*starts, time.Since(began))
	}
	if processor != nil {
		used, err := p.processorTime()
		if err != nil {
			return err
		}
		*processor = append(*processor, used)
	}
	before, err := p.settled(ctx)
	if err != nil {
		return err
	}
	return measure(p, before)
}

// grow measures what connections and keys add, each in a new process.
func (m *memoryRun) grow(ctx context.Context) error {
	err := m.with(ctx, 0, nil, nil, func(p *process, before use) error {
		var open []io.Closer
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for i := range m.effort.Connections {
			c, err := p.connect(ctx)
			if err != nil {
				return err
			}
			open = append(open, c)
			if err := c.ask(strconv.Itoa(i % 10)); err != nil {
				return err
			}
		}
		after, err := p.settled(ctx)
		m.to.PerConnection = (after.all - before.all) / float64(m.effort.Connections)
		return err
	})
	if err != nil {
		return err
	}
	return m.with(ctx, 0, nil, nil, func(p *process, before use) error {
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		for i := range m.effort.Keys {
			if err := c.ask("client-" + strconv.Itoa(1e6+i)); err != nil {
				return err
			}
		}
		after, err := p.settled(ctx)
		m.to.PerKeys = after.all - before.all
		return err
	})
}

// client is a connection to a proxy.
type client struct {
	net.Conn

	answers *bufio.Reader
}

func (p *process) connect(ctx context.Context) (*client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn)}, conn.SetDeadline(time.Now().Add(10 * time.Minute))
}

// first sends a request on a connection of its own.
func (p *process) first(ctx context.Context) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.ask(keyValue)
}

// ask sends a request with a key, and reads the answer.
func (c *client) ask(key string) error {
	_, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\n%s: %s\r\n\r\n", keyHeader, key)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("got status %d, want 200", answer.StatusCode)
	}
	return nil
}

// use is the memory of a process and its children, in bytes.
type use struct{ all, files float64 }

// settled returns the memory a second later.
func (p *process) settled(ctx context.Context) (use, error) {
	select {
	case <-time.After(settle):
		return p.uses()
	case <-ctx.Done():
		return use{}, ctx.Err()
	}
}

func (p *process) uses() (use, error) {
	pids, err := p.family()
	if err != nil {
		return use{}, err
	}
	var sum use
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return use{}, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if fields[0] != "Pss:" && fields[0] != "Pss_File:" {
				continue
			}
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return use{}, err
			}
			if fields[0] == "Pss:" {
				sum.all += kib * 1024
			} else {
				sum.files += kib * 1024
			}
		}
	}
	return sum, nil
}
