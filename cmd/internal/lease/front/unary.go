package front

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// patience bounds the wait of a unary call for its answers. A server answers after the next division, but a new resource of a
// server with a parent waits for the parent.
const patience = 5 * time.Second

// call is a unary call. It waits for an answer to each of its claims.
type call struct {
	seq  uint64
	done chan struct{} // closed when all claims are answered, or the call is replaced

	mu       sync.Mutex // Guards the fields below.
	queue    queue
	missing  int // claims without an answer
	replaces bool
	ended    bool
}

// unary answers a unary call. It is a grpc.MethodDesc.Handler.
//
//nolint:revive // grpc.MethodDesc orders the arguments.
func (s *Service) unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	r := request{ctx: ctx, account: rpc.AccountOf(ctx)}
	defer r.release()
	if err := decode(&r); err != nil {
		return nil, err
	}
	if r.fault != nil {
		return nil, r.fault
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	encoded, err := s.report(ctx, access.CallOf(ctx).Client().Name(), &r.report)
	if err != nil {
		return nil, err
	}
	return rpc.NewResponse(r.account, encoded), nil
}

// report takes a report, and waits for the answers of its claims.
func (s *Service) report(ctx context.Context, caller string, r *state.Report) ([]byte, error) {
	c := &call{seq: r.Seq, done: make(chan struct{})}
	for i := range r.Claims {
		if !r.Claims[i].Release {
			c.missing++
		}
	}
	none := c.missing == 0
	fresh, refused := s.receive(caller, r, c)
	defer s.forget(r.Holder, c)
	master := ""
	switch {
	case refused != nil:
		return nil, statusOf(refused)
	case !fresh && s.elsewhere(&master):
		if master == "" {
			return nil, errNoMaster
		}
		return redirected(r.Holder, master), nil
	case none:
		return wire.AppendText(nil, 1, r.Holder), nil
	case !fresh:
		return nil, status.Errorf(codes.FailedPrecondition, "seq: %d is not above that of an earlier report: count reports up", r.Seq)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	return c.result()
}

// elsewhere reports whether another server gives the leases, and sets its address.
func (s *Service) elsewhere(master *string) (away bool) {
	*master, _, away = s.away()
	return away
}

// result gives the response.
func (c *call) result() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.replaces:
		return nil, status.Error(codes.Aborted, "a newer report of the holder has arrived: use the answer to that one")
	case c.missing > 0:
		const text = "%d claims have no lease yet, because the parent of the server does not answer: report again"
		return nil, status.Errorf(codes.Unavailable, text, c.missing)
	}
	all := c.queue.take()
	b := wire.AppendText(nil, 1, all[0].holder)
	for _, a := range all {
		if a.given {
			b = appendLease(b, &a.lease)
		}
		if a.refused != nil {
			b = appendRefusal(b, a.seq, a.refused)
		}
	}
	return b, nil
}

// forget ends the part of a call as the sink of its holder.
func (s *Service) forget(holder string, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[holder] == c {
		delete(s.owners, holder)
	}
}

// lease implements sink.
func (c *call) lease(holder string, l *state.Lease) {
	if l.Seq != c.seq {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.lease(holder, l)
	c.answered()
}

// refuse implements sink.
func (c *call) refuse(holder string, seq uint64, err *state.Error) {
	if seq != c.seq {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.refuse(holder, seq, err)
	c.answered()
}

// replaced implements sink.
func (c *call) replaced(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing > 0 {
		c.replaces = true
		c.end()
	}
}

// flush implements sink.
func (*call) flush() {}

// answered counts an answer. The caller holds mu.
func (c *call) answered() {
	if c.missing--; c.missing == 0 {
		c.end()
	}
}

// end ends the wait. The caller holds mu.
func (c *call) end() {
	if !c.ended {
		c.ended = true
		close(c.done)
	}
}
