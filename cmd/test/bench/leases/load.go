package leases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// meanWants is the mean of what a holder wants, in thousandths of a unit a second. Holders want 0.2 to 1.8 of it.
const meanWants = 100_000

// load has the streams to one server.
type load struct {
	echo          bool
	active, drift atomic.Bool
	streams       []*stream
	end           context.CancelFunc
	ended         sync.WaitGroup

	mu    sync.Mutex // Guards first.
	first error
}

// newLoad opens all streams.
func newLoad(ctx context.Context, at string, size Size, echo bool) (*load, error) {
	l := &load{echo: echo}
	ctx, l.end = context.WithCancel(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token))
	for i := range size.Streams {
		s, err := l.open(ctx, at)
		if err != nil {
			l.close()
			return nil, err
		}
		for j := range size.PerStream {
			s.holders = append(s.holders, newHolder(fmt.Sprint("db/", (i*size.PerStream+j)%size.Resources)))
		}
		for j := range s.holders {
			s.by[s.holders[j].name] = &s.holders[j]
		}
		l.streams = append(l.streams, s)
		l.ended.Go(func() { l.note(ctx, s.receive()) })
		l.ended.Go(func() { l.note(ctx, s.send(ctx, size)) })
	}
	return l, nil
}

func (l *load) open(ctx context.Context, at string) (*stream, error) {
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		return nil, err
	}
	of, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/headgate.lease.v1.Leases/Stream")
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &stream{load: l, conn: conn, of: of, by: map[string]*holder{}, rand: rand.New(rand.NewPCG(rand.Uint64(), 1))}, nil
}

// note keeps the first error of a stream.
func (l *load) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = err
	}
}

func (l *load) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// close ends all streams.
func (l *load) close() {
	l.end()
	for _, s := range l.streams {
		_ = s.conn.Close()
	}
	l.ended.Wait()
}

// leased returns how many holders have an amount.
func (l *load) leased() (n int) {
	for _, s := range l.streams {
		s.mu.Lock()
		for i := range s.holders {
			if s.holders[i].amount > 0 {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// reset forgets all counts.
func (l *load) reset() {
	for _, s := range l.streams {
		s.mu.Lock()
		s.reports, s.answers, s.pushes, s.waits = 0, 0, 0, s.waits[:0]
		s.mu.Unlock()
	}
}

// figure sums up the counts since reset.
func (l *load) figure() (f Figure) {
	var waits []time.Duration
	var has, wants int64
	for _, s := range l.streams {
		s.mu.Lock()
		f.Reports, f.Answers, f.Pushes = f.Reports+s.reports, f.Answers+s.answers, f.Pushes+s.pushes
		waits = append(waits, s.waits...)
		for i := range s.holders {
			has, wants = has+s.holders[i].amount, wants+s.holders[i].wants
		}
		s.mu.Unlock()
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		f.P50, f.P99 = waits[len(waits)/2], waits[len(waits)*99/100]
	}
	f.HasOfCent = 100 * float64(has) / float64(wants)
	return f
}
