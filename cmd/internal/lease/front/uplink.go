package front

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/internal/lease/state"
)

// UplinkOptions are the settings of an Uplink.
type UplinkOptions struct {
	// Servers are host:port of the parents: servers of one group. The first one that answers is used.
	Servers []string
	// Credentials are for all of them.
	Credentials credentials.TransportCredentials
	// Token reads the token of this server. It may be nil.
	Token func() (string, error)
	// Holder is the name of this server at its parents: see HolderOf.
	Holder string
	Log    *slog.Logger

	dial func(ctx context.Context, at string) (net.Conn, error) // opens a connection in tests, or nil
}

// Bounds of an uplink.
const (
	// maxUp bounds the reports that wait for the stream, in bytes: those of all resources. Further ones are dropped: the state machine
	// repeats them. With a larger bound, reports would wait until their answers are too late.
	maxUp = 4 << 20
	// leastPause and mostPause bound the pause before another attempt to open a stream.
	leastPause, mostPause = 50 * time.Millisecond, 2 * time.Second
	// openTime bounds the time for a parent to accept a stream.
	openTime = 5 * time.Second
	// maxRedirects bounds the redirects to another master without a pause.
	maxRedirects = 3
	// maxDown bounds a message of the parent: that of a stream.
	maxDown = 4 << 20
)

// Uplink carries the reports of a Service to its parent, and the leases back. It is safe for concurrent use.
type Uplink struct {
	options UplinkOptions
	life    context.Context //nolint:containedctx // It ends the stream. Start sets it.
	stop    context.CancelFunc
	ended   sync.WaitGroup
	service *Service
	wake    chan struct{} // has room for one
	stats   struct{ opened, sent, dropped atomic.Uint64 }

	warnings loglimit.Limiter

	mu      sync.Mutex // Guards the fields below.
	reports [][]byte
	bytes   int
	parent  string // of the open stream; "" without one
}

// NewUplink makes an Uplink. Its Up is for Options.Up.
func NewUplink(o UplinkOptions) *Uplink {
	return &Uplink{options: o, wake: make(chan struct{}, 1)}
}

// HolderOf gives the name of a server at its parents, which no program can guess without the token. With a token, a server has the
// same name after a restart, so that its parent knows what it had. No two running servers may have the same instance: they would
// use one lease. The name is random without a token or an instance.
func HolderOf(token, instance string) string {
	if token == "" || instance == "" {
		return rand.Text()
	}
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("headgate.lease.v1 holder " + instance))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

// Start opens streams until Close. The leases go to s. An Uplink may be started again after Close.
func (u *Uplink) Start(s *Service) {
	u.service = s
	u.life, u.stop = context.WithCancel(context.Background())
	u.ended.Go(u.run)
}

// Close ends the stream. What the server holds ends with its lease. One goroutine at a time calls Start and Close.
func (u *Uplink) Close() {
	if u.stop == nil {
		return
	}
	u.stop()
	u.ended.Wait()
}

// Parent gives the address of the parent with an open stream, or "".
func (u *Uplink) Parent() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.parent
}

// UplinkStats are the counters of an Uplink.
type UplinkStats struct {
	// Opened counts streams that a parent has accepted, Sent reports, and Dropped reports without a stream.
	Opened, Sent, Dropped uint64
}

// Stats reads the counters.
func (u *Uplink) Stats() UplinkStats {
	return UplinkStats{Opened: u.stats.opened.Load(), Sent: u.stats.sent.Load(), Dropped: u.stats.dropped.Load()}
}

// Up queues a report. Without a stream it is dropped.
func (u *Uplink) Up(r *state.Report) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.parent == "" || u.bytes > maxUp {
		u.stats.dropped.Add(1)
		return
	}
	b := encodeReport(u.options.Holder, r)
	u.reports = append(u.reports, b)
	u.bytes += len(b)
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// take empties the queue of reports.
func (u *Uplink) take() [][]byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.reports
	u.reports, u.bytes = nil, 0
	return all
}

// connect notes the parent of the open stream. Reports for an earlier stream are dropped.
func (u *Uplink) connect(parent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parent, u.reports, u.bytes = parent, nil, 0
}
