package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
)

// reader is a stage that reads two metadata of answers; one of them is for it alone.
type reader struct{ notified chan string }

func (reader) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "reader"}} }

func (reader) Facts() guard.Facts {
	return guard.Facts{Answer: []string{"X-Own", "X-Work"}, Private: []string{"X-Work"}}
}

func (reader) Enter(*guard.Pass) headgate.Decision { return headgate.Decision{} }

func (r reader) Leave(_ *guard.Pass, o *guard.Outcome) {
	own, _ := o.Header("X-Own")
	work, _ := o.Header("X-Work")
	r.notified <- own + " " + work
}

// TestPrivateMetadata: metadata for a stage alone reach the stage and not the client, however the
// handler sets them: as header or trailer, by the context, in unary calls and in streams.
func TestPrivateMetadata(t *testing.T) {
	for name, set := range map[string]func(context.Context, metadata.MD) error{
		"SetHeader": grpc.SetHeader, "SendHeader": grpc.SendHeader, "SetTrailer": grpc.SetTrailer,
	} {
		r := reader{make(chan string, 1)}
		g, err := guard.New(guard.Config{Stages: []guard.Stage{r}})
		if err != nil {
			t.Fatal(err)
		}
		md := metadata.Pairs("x-own", "1", "x-work", "2")
		client := serve(t, g, &service{called: func(ctx context.Context) error { return set(ctx, md) }}, grpclimit.Options{})
		var header, trailer metadata.MD
		if _, err := client.EmptyCall(t.Context(), &testgrpc.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		checkPrivate(t, name+" of a call", <-r.notified, header, trailer)
		stream, err := client.StreamingOutputCall(t.Context(), &testgrpc.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		header, _ = stream.Header()
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		checkPrivate(t, name+" of a stream", <-r.notified, header, stream.Trailer())
		if len(md.Get("x-work")) != 1 {
			t.Errorf("%s: the metadata of the handler have changed: %v", name, md)
		}
	}
}

func checkPrivate(t *testing.T, says, detail string, header, trailer metadata.MD) {
	t.Helper()
	all := metadata.Join(header, trailer)
	if detail != "1 2" || len(all.Get("x-own")) != 1 || len(all.Get("x-work")) != 0 {
		t.Errorf("%s: the stage reads %q, and the client gets %v", says, detail, all)
	}
}
