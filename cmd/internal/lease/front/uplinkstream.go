package front

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// errDraining ends a stream for another one.
var errDraining = errors.New("the parent drains")

// errSilent is the cause of an error after the end of openTime, which gRPC does not know.
var errSilent = fmt.Errorf("the parent did not accept the stream within %v: check its address, and the network", openTime)

// movedError says that another one of the servers is the master.
type movedError struct{ to string }

func (e *movedError) Error() string { return "the master is " + e.to }

// run keeps a stream open until Close.
func (u *Uplink) run() {
	pause, redirects, master := leastPause, 0, ""
	for turn := 0; u.life.Err() == nil; {
		at := u.options.Servers[turn%len(u.options.Servers)]
		if master != "" {
			at, master = master, ""
		}
		opened, err := u.serve(at)
		if moved, ok := errors.AsType[*movedError](err); ok && redirects < maxRedirects {
			redirects, master = redirects+1, moved.to
			continue
		}
		turn++ // Not after a redirect: else a server in a circle could be the only one that is tried.
		if redirects = 0; opened {
			pause = leastPause
		}
		if u.life.Err() == nil && !errors.Is(err, errDraining) {
			u.warn("no stream to the parent: leases end unless another server answers", "parent", at, "error", err)
		}
		select {
		case <-time.After(time.Duration((0.5 + rand.Float64()) * float64(pause))):
		case <-u.life.Done():
		}
		pause = min(2*pause, mostPause)
	}
}

// serve opens a stream to a parent and uses it until it ends. It reports whether the parent has accepted it.
func (u *Uplink) serve(at string) (opened bool, err error) {
	ctx, cancel := context.WithCancel(u.life)
	defer cancel()
	conn, err := u.connection(at)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := u.open(ctx, cancel, conn)
	if err != nil {
		return false, wire.Mismatch(err, u.options.Credentials.Info().SecurityProtocol == "tls", "lease.tls")
	}
	u.stats.opened.Add(1)
	u.connect(at)
	defer u.connect("")
	u.options.Log.Info("a stream to the parent is open", "parent", at)
	received := make(chan error, 1)
	go func() {
		received <- u.receive(stream)
		cancel()
	}()
	u.send(ctx, stream)
	cancel()
	return true, <-received
}

// connection gives a connection for one stream. A kept one would pause between its attempts, up to two minutes after an outage.
func (u *Uplink) connection(at string) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(u.options.Credentials), grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxDown)),
	}
	if u.options.dial != nil {
		options = append(options, grpc.WithContextDialer(u.options.dial))
	}
	conn, err := grpc.NewClient("passthrough:///"+at, options...)
	if err != nil {
		return nil, fmt.Errorf("lease: %s: %w", at, err)
	}
	return conn, nil
}

// open opens a stream, and waits until the parent accepts it.
func (u *Uplink) open(ctx context.Context, cancel func(), conn *grpc.ClientConn) (grpc.ClientStream, error) {
	if u.options.Token != nil {
		token, err := u.options.Token()
		if err != nil {
			return nil, err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	late := time.AfterFunc(openTime, cancel)
	defer late.Stop()
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := conn.NewStream(ctx, desc, "/"+Name+"/Stream", grpc.ForceCodecV2(raw{}))
	if err == nil {
		if header, fault := stream.Header(); fault == nil && header != nil {
			return stream, nil
		}
		err = stream.RecvMsg(new([]byte)) // It has the reason.
	}
	if !late.Stop() {
		err = errSilent
	}
	return nil, err
}

// send sends reports until ctx ends.
func (u *Uplink) send(ctx context.Context, stream grpc.ClientStream) {
	for {
		for _, b := range u.take() {
			if stream.SendMsg(mem.SliceBuffer(b)) != nil {
				return // The receiver gets the reason.
			}
			u.stats.sent.Add(1)
		}
		select {
		case <-u.wake:
		case <-ctx.Done():
			return
		}
	}
}

// receive takes the messages of the parent.
func (u *Uplink) receive(stream grpc.ClientStream) error {
	parents := lengths{own: u.service.length()}
	for {
		var b []byte
		if err := stream.RecvMsg(&b); err != nil {
			return err
		}
		r, err := decodeResponse(b)
		if err != nil {
			return err
		}
		u.refused(&r)
		if longest, short := parents.see(r.leases); short {
			u.warn("leases of the parent are not longer than those of this server, which it cuts to what is left: set lease.length",
				"parent", longest, "lease.length", parents.own)
		}
		u.service.fromParent(&r)
		switch {
		case r.master != "" && !slices.Contains(u.options.Servers, r.master):
			return fmt.Errorf("the master %.300q is not in lease.servers and gets no token: add it if it is a server of yours", r.master)
		case r.master != "":
			return &movedError{r.master}
		case r.draining:
			return errDraining
		}
	}
}

// refused logs a refusal of a whole report. Those of claims go to the holders.
func (u *Uplink) refused(r *response) {
	for _, refused := range r.refusals {
		if refused.Resource == "" {
			u.warn("the parent refuses a report", "error", refused.Text)
			return
		}
	}
}

// lengths compares the leases of a parent with those of this server, over the first answers of a stream.
type lengths struct {
	own, longest time.Duration
	seen         int
}

// enoughAnswers is the number of answers after which a parent has shown its full length, unless its own lease ends.
const enoughAnswers = 20

// see takes the leases of a message. short is true once, if those so far are not longer than the own ones.
func (l *lengths) see(leases []state.Lease) (longest time.Duration, short bool) {
	before := l.seen
	for i := range leases {
		if one := &leases[i]; one.Seq != 0 && one.Length > 0 {
			l.longest = max(l.longest, one.Length)
			l.seen = min(before+1, enoughAnswers)
		}
	}
	return l.longest, before < enoughAnswers && l.seen == enoughAnswers && l.longest <= l.own
}

// warn logs some warnings: a failure repeats with each attempt.
func (u *Uplink) warn(text string, args ...any) {
	if _, log := u.warnings.Event(time.Now()); log {
		u.options.Log.Warn(text, args...) //nolint:sloglint // both callers give a constant
	}
}

// errRaw says that a message is no bytes: a programmer's fault.
var errRaw = errors.New("lease: the uplink sends and receives bytes")

// raw passes encoded messages through gRPC: a mem.Buffer is sent, and a *[]byte receives.
type raw struct{}

// Name implements encoding.CodecV2.
func (raw) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	buffer, ok := v.(mem.Buffer)
	if !ok {
		return nil, errRaw
	}
	return mem.BufferSlice{buffer}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*[]byte)
	if !ok {
		return errRaw
	}
	*into = data.Materialize()
	return nil
}
