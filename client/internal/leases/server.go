package leases

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// Group has servers by address. One of them may be the master.
type Group struct {
	tb      testing.TB
	base    time.Time
	mu      sync.Mutex
	config  state.Config
	servers map[string]*Server
	master  string
}

// Server is one server of a group.
type Server struct {
	group  *Group
	at     string
	pipe   *bufconn.Listener
	rpc    *grpc.Server
	served chan struct{}

	mu      sync.Mutex // Guards the fields below.
	state   *state.Server
	out     state.Out
	streams map[*streamOf]bool
	timer   *time.Timer
	caller  string
	tokens  []string
	reports int
	answer  func(*Message) // changes what is sent
	ended   bool
}

// New makes a group whose servers have a configuration.
func New(tb testing.TB, c state.Config) *Group {
	tb.Helper()
	c.Term = 1
	return &Group{tb: tb, base: time.Now(), config: c, servers: make(map[string]*Server)}
}

// Dial connects to a server of the group by its address.
func (g *Group) Dial(ctx context.Context, at string) (net.Conn, error) {
	g.mu.Lock()
	s := g.servers[at]
	g.mu.Unlock()
	if s == nil {
		return nil, errors.New("no server at " + at)
	}
	return s.pipe.DialContext(ctx)
}

// Start starts a server at an address. It is the master if there is none.
func (g *Group) Start(at string) *Server {
	g.tb.Helper()
	s := &Server{group: g, at: at, pipe: bufconn.Listen(1 << 16), served: make(chan struct{}), streams: make(map[*streamOf]bool)}
	s.rpc = grpc.NewServer()
	s.rpc.RegisterService(s.service(), s)
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	if s.state, err = state.New(g.config, g.now()); err != nil {
		g.tb.Fatal(err)
	}
	g.config.Term++
	g.config.Restarted = true
	g.servers[at] = s
	if g.master == "" {
		g.master = at
	}
	s.timer = time.AfterFunc(time.Hour, s.advance)
	go func() {
		defer close(s.served)
		_ = s.rpc.Serve(s.pipe)
	}()
	return s
}

// Kill ends a server and its connections.
func (s *Server) Kill() {
	s.group.mu.Lock()
	if s.group.servers[s.at] == s {
		delete(s.group.servers, s.at)
	}
	if s.group.master == s.at {
		s.group.master = ""
	}
	s.group.mu.Unlock()
	s.mu.Lock()
	s.ended = true
	s.timer.Stop()
	s.mu.Unlock()
	s.rpc.Stop()
	<-s.served
}

// Close ends all servers.
func (g *Group) Close() {
	g.mu.Lock()
	all := make([]*Server, 0, len(g.servers))
	for _, s := range g.servers {
		all = append(all, s)
	}
	g.mu.Unlock()
	for _, s := range all {
		s.Kill()
	}
}

// SetMaster makes an address the one that other servers name.
func (g *Group) SetMaster(at string) {
	g.mu.Lock()
	g.master = at
	g.mu.Unlock()
}

func (g *Group) now() headgate.Instant { return headgate.Instant(time.Since(g.base)) }

// Answer changes each message before it is sent.
func (s *Server) Answer(change func(*Message)) {
	s.mu.Lock()
	s.answer = change
	s.mu.Unlock()
}

// Drain asks all holders to leave.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream.queue(draining())
	}
}

// Configure replaces the resources.
func (s *Server) Configure(resources []state.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.state.Configure(s.group.now(), resources, nil); err != nil {
		s.group.tb.Error(err)
	}
	s.flush()
}

// Usage returns what is out of a resource, and the number of reports so far.
func (s *Server) Usage(resource string) (usage state.Usage, reports int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage, _ = s.state.Usage(s.group.now(), resource)
	return usage, s.reports
}

// Tokens returns the authorization of each stream so far.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

// receive takes a report of a stream.
func (s *Server) receive(from *streamOf, r *state.Report) {
	s.group.mu.Lock()
	master := s.group.master
	s.group.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.reports++
	if master != s.at {
		from.queue(moved(r.Holder, master))
		return
	}
	from.holders[r.Holder] = true
	if err := s.state.Receive(s.group.now(), s.caller, r, &s.out); err != nil {
		s.group.tb.Errorf("a report is refused: %v", err)
	}
	s.flush()
}

func (s *Server) advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.state.Advance(s.group.now(), &s.out)
	s.flush()
}

// flush sends what the server has to say, and sets the timer. The caller holds mu.
func (s *Server) flush() {
	for i := range s.out.Leases {
		d := &s.out.Leases[i]
		s.send(d.Holder, leased(d))
	}
	for i := range s.out.Refusals {
		s.send(s.out.Refusals[i].Holder, refused(&s.out.Refusals[i]))
	}
	s.out.Reset()
	if at, ok := s.state.Next(); ok && !s.ended {
		s.timer.Reset(max(at.Sub(s.group.now()), 0))
	}
}

func (s *Server) send(holder string, m *Message) {
	if s.answer != nil {
		s.answer(m)
	}
	for stream := range s.streams {
		if stream.holders[holder] {
			stream.queue(m)
		}
	}
}
