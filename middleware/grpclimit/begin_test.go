package grpclimit_test

import (
	"testing"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
)

// order is a stage that notes what it is told of one request.
type order struct{ notified chan string }

func (order) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "order"}} }

func (order) Facts() guard.Facts { return guard.Facts{} }

func (order) Enter(*guard.Pass) headgate.Decision { return headgate.Decision{} }

func (o order) Stream(*guard.Pass) { o.notified <- "stream" }

func (o order) Answers(_ *guard.Pass, status int) {
	if status != 0 {
		o.notified <- "a status"
	}
	o.notified <- "answers"
}

func (o order) Leave(*guard.Pass, *guard.Outcome) { o.notified <- "leave" }

// TestStreamAnswers: the answer of a stream begins with its header or its first message. A call answers at its end.
func TestStreamAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []*testgrpc.ResponseParameters
		want  []string
	}{
		"two messages": {sizes: []*testgrpc.ResponseParameters{{Size: 1}, {Size: 1}}, want: []string{"stream", "answers", "leave"}},
		"none":         {want: []string{"stream", "leave"}},
	} {
		o := order{make(chan string, 10)}
		g, err := guard.New(guard.Config{Stages: []guard.Stage{o}})
		if err != nil {
			t.Fatal(err)
		}
		client := serve(t, g, &service{}, grpclimit.Options{})
		stream, err := client.StreamingOutputCall(t.Context(), &testgrpc.StreamingOutputCallRequest{ResponseParameters: c.sizes})
		for err == nil {
			_, err = stream.Recv()
		}
		for _, want := range c.want {
			if got := <-o.notified; got != want {
				t.Errorf("%s: the stage is told %q, want %q", name, got, want)
			}
		}
		if _, err := client.EmptyCall(t.Context(), &testgrpc.Empty{}); err != nil {
			t.Fatal(err)
		}
		if got := <-o.notified; got != "leave" {
			t.Errorf("%s: the stage is told %q of a call", name, got)
		}
	}
}
