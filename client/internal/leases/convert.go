package leases

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

type (
	// Message is what a server sends.
	Message = leasev1.ReportResponse
	// Lease is a lease of a message.
	Lease = leasev1.Lease
)

// streamOf is one stream of a program.
type streamOf struct {
	holders map[string]bool
	out     chan *Message
}

// queue queues a message. A program that does not read loses messages.
func (o *streamOf) queue(m *Message) {
	select {
	case o.out <- m:
	default:
	}
}

// service describes the service for gRPC.
func (s *Server) service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "headgate.lease.v1.Leases", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.stream(stream) },
		}},
	}
}

func (s *Server) stream(stream grpc.ServerStream) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	o := &streamOf{holders: make(map[string]bool), out: make(chan *Message, 10_000)}
	given, _ := metadata.FromIncomingContext(stream.Context())
	s.mu.Lock()
	s.tokens = append(s.tokens, given.Get("authorization")...)
	s.streams[o] = true
	s.mu.Unlock()
	ended := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			select {
			case m := <-o.out:
				if stream.SendMsg(m) != nil {
					return
				}
			case <-ended:
				return
			}
		}
	}()
	defer func() {
		s.mu.Lock()
		delete(s.streams, o)
		s.mu.Unlock()
		close(ended)
		<-sent
	}()
	for {
		m := new(leasev1.ReportRequest)
		if err := stream.RecvMsg(m); err != nil {
			return nil // The program has left.
		}
		s.receive(o, reportOf(m))
	}
}

func reportOf(m *leasev1.ReportRequest) *state.Report {
	r := &state.Report{Holder: m.GetHolder(), Seq: m.GetSeq()}
	for _, c := range m.GetClaims() {
		r.Claims = append(r.Claims, state.Claim{
			Resource: c.GetResource(), Wants: c.GetWants(), Band: int(c.GetBand()), Version: versionOf(c.GetVersion()),
			Holds: c.GetHolds(), Left: time.Duration(c.GetLeftUs()) * time.Microsecond, Release: c.GetRelease(),
			Spent: c.GetSpent(), Refused: c.GetRefused(), Unbacked: c.GetUnbacked(),
		})
	}
	for _, a := range m.GetAcks() {
		r.Acks = append(r.Acks, state.Ack{Resource: a.GetResource(), Version: versionOf(a.GetVersion()), Holds: a.GetHolds()})
	}
	return r
}

func versionOf(v *leasev1.Version) state.Version {
	return state.Version{Term: v.GetTerm(), Number: v.GetNumber()}
}

func leased(d *state.Delivery) *Message {
	l := &d.Lease
	return &Message{Holder: d.Holder, Leases: []*leasev1.Lease{{
		Resource: l.Resource, Version: &leasev1.Version{Term: l.Version.Term, Number: l.Version.Number}, Amount: l.Amount, Seq: l.Seq,
		LengthUs: l.Length.Microseconds(), RefreshUs: l.Refresh.Microseconds(), Safe: l.Safe, Slots: l.Slots,
		UnknownUs: l.Unknown.Microseconds(), Unbacked: l.Unbacked,
	}}}
}

func refused(r *state.Refusal) *Message {
	return &Message{Holder: r.Holder, Refusals: []*leasev1.Refusal{{
		Seq: r.Seq, Resource: r.Err.Resource, Code: leasev1.Code(r.Err.Code), Text: r.Err.Text,
	}}}
}

func moved(holder, master string) *Message { return &Message{Holder: holder, Master: master} }

func draining() *Message { return &Message{Draining: true} }
