package xds

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

type adsStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// scripted is a server that runs a function for each stream.
type scripted struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	script  func(adsStream) error
	streams atomic.Int64
}

func (s *scripted) StreamAggregatedResources(stream adsStream) error {
	s.streams.Add(1)
	return s.script(stream)
}

// play runs a script as the server and check as the test, in a bubble.
func play(t *testing.T, script func(adsStream) error, check func(*testing.T, *scripted, *instance)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n network
		server, s := grpc.NewServer(), &scripted{script: script}
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
		l := n.listen()
		go func() { _ = server.Serve(l) }()
		i := follow(t, n.source(t, Config{}), refuseBad)
		check(t, s, i)
		i.stop(t)
		server.Stop()
	})
}

// answerOf returns a response with resources of the type.
func answerOf(version string, nonce int, values ...[]byte) *discoveryv3.DiscoveryResponse {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version, Nonce: fmt.Sprint(nonce), TypeUrl: TypeURL}
	for _, value := range values {
		r.Resources = append(r.Resources, &anypb.Any{TypeUrl: TypeURL, Value: value})
	}
	return r
}

func valid(t *testing.T, name, value string) []byte {
	t.Helper()
	return encode(t, domain(name, value))
}

// TestMalformedContent refuses what cannot be converted, without a call of apply. A server that
// repeats it gets few messages. The stream stays open for a valid configuration.
func TestMalformedContent(t *testing.T) {
	for name, content := range map[string]*discoveryv3.DiscoveryResponse{
		"no protocol buffer": answerOf("v", 0, []byte("\xff\xff")),
		"same names":         answerOf("v", 0, valid(t, "same", "a"), valid(t, "same", "b")),
		"another type":       {VersionInfo: "v", Nonce: "0", TypeUrl: TypeURL, Resources: []*anypb.Any{{TypeUrl: "x"}}},
		"many messages":      answerOf("v", 0, []byte(strings.Repeat("\x1a\x00", maxMessages+1))),
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			play(t, func(stream adsStream) error {
				for {
					r, err := stream.Recv()
					if err != nil {
						return err
					}
					n := requests.Add(1)
					if n > 1 && (r.GetErrorDetail().GetMessage() == "" || r.GetVersionInfo() != "" || r.GetResponseNonce() != "0") {
						t.Errorf("got %v, want a refusal", r)
					}
					if err := stream.Send(content); err != nil {
						return err
					}
				}
			}, func(t *testing.T, s *scripted, i *instance) {
				t.Helper()
				<-time.After(30 * time.Second)
				if n := requests.Load(); n < 5 || n > 10 {
					t.Errorf("the server got %d messages in 30 s, want 5 to 10", n)
				}
				sets, faults, _ := i.known()
				if len(sets) != 0 || len(faults) != 1 || s.streams.Load() != 1 {
					t.Errorf("apply was called %d times, %d streams, faults %v; want no call, one stream, one fault",
						len(sets), s.streams.Load(), faults)
				}
			})
		})
	}
}

// TestNewContentDuringPause sends a good configuration while the answer to a refused one is due
// later. It is applied at once, and only its nonce is answered.
func TestNewContentDuringPause(t *testing.T) {
	nonces := make(chan string, 10)
	bad, good := valid(t, "a", "bad"), valid(t, "a", "good")
	play(t, func(stream adsStream) error {
		for step := range 3 {
			r, err := stream.Recv()
			if err != nil {
				return err
			}
			nonces <- r.GetResponseNonce()
			switch step {
			case 0:
				err = stream.Send(answerOf("1", 1, bad))
			case 1:
				err = stream.Send(answerOf("1", 2, bad))
				<-time.After(100 * time.Millisecond)
				if err == nil {
					err = stream.Send(answerOf("2", 3, good))
				}
			}
			if err != nil {
				return err
			}
		}
		<-stream.Context().Done()
		return nil
	}, func(t *testing.T, _ *scripted, i *instance) {
		t.Helper()
		i.awaitValue(t, "good") // A pause would answer nonce 2 first.
		if got := []string{<-nonces, <-nonces, <-nonces}; fmt.Sprint(got) != "[ 1 3]" {
			t.Errorf("the answers have the nonces %q, want none, 1 and 3", got)
		}
	})
}

// TestEndlessResponses reads a server that sends without end at 10 responses a second, and reports few faults.
func TestEndlessResponses(t *testing.T) {
	good := valid(t, "a", "good")
	for name, next := range map[string]func(n int) *discoveryv3.DiscoveryResponse{
		"of another type": func(n int) *discoveryv3.DiscoveryResponse {
			return &discoveryv3.DiscoveryResponse{VersionInfo: "v", Nonce: fmt.Sprint(n), TypeUrl: "type.googleapis.com/x"}
		},
		"with one content": func(n int) *discoveryv3.DiscoveryResponse { return answerOf("v", n, good) },
		"with new contents": func(n int) *discoveryv3.DiscoveryResponse {
			return answerOf(fmt.Sprint(n), n, valid(t, "a", fmt.Sprint(n)))
		},
		"that are all refused": func(n int) *discoveryv3.DiscoveryResponse {
			return answerOf(fmt.Sprint(n), n, valid(t, "a", fmt.Sprint("bad", n)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var answers atomic.Int64
			play(t, func(stream adsStream) error {
				go func() {
					for {
						if _, err := stream.Recv(); err != nil {
							return
						}
						answers.Add(1)
					}
				}()
				for n := 0; ; n++ {
					if err := stream.Send(next(n)); err != nil {
						return err
					}
				}
			}, func(t *testing.T, s *scripted, i *instance) {
				t.Helper()
				<-time.After(60 * time.Second)
				sets, faults, _ := i.known()
				if n := answers.Load(); n > 622 || len(sets) > 622 || len(faults) > 61 || s.streams.Load() != 1 {
					t.Errorf("%d answers, %d calls of apply, %d faults and %d streams in 60 s, want 10 a second",
						n, len(sets), len(faults), s.streams.Load())
				}
			})
		})
	}
}

// TestServerThatClosesStreams opens a stream at most every 0.4 s.
func TestServerThatClosesStreams(t *testing.T) {
	good := valid(t, "a", "good")
	play(t, func(stream adsStream) error {
		_ = stream.Send(answerOf("v", 1, good))
		return fmt.Errorf("%s", strings.Repeat("no\n", 1000))
	}, func(t *testing.T, s *scripted, i *instance) {
		t.Helper()
		<-time.After(60 * time.Second)
		sets, faults, _ := i.known()
		if n := s.streams.Load(); n < 30 || n > 151 || len(sets) != 1 || len(faults) > 7 {
			t.Errorf("%d streams, %d calls of apply, %d faults in 60 s", n, len(sets), len(faults))
		}
		for _, err := range faults {
			if text := err.Error(); len(text) > 600 || strings.Contains(text, "\n") {
				t.Errorf("the fault is not cut and quoted: %s", text)
			}
		}
	})
}

// TestServerThatNeverReads sends responses and reads no answer. The stream is opened again when an
// answer cannot be sent.
func TestServerThatNeverReads(t *testing.T) {
	good := valid(t, "a", "good")
	play(t, func(stream adsStream) error {
		for n := 0; ; n++ {
			if err := stream.Send(answerOf(strings.Repeat("v", maxToken), n, good)); err != nil {
				return err
			}
		}
	}, func(t *testing.T, s *scripted, i *instance) {
		t.Helper()
		<-time.After(5 * time.Minute)
		sets, faults, _ := i.known()
		if n := s.streams.Load(); n < 2 || n > 60 || len(sets) != 1 || len(faults) > 30 {
			t.Errorf("%d streams, %d calls of apply, %d faults in 5 min", n, len(sets), len(faults))
		}
		if len(faults) == 0 || !strings.Contains(faults[0].Error(), errNotRead.Error()) {
			t.Errorf("the faults are %v, want %v", faults, errNotRead)
		}
	})
}

// TestLargeMessages refuses a message above MaxMessageBytes, with advice, and decodes hostile ones in
// bounded memory.
func TestLargeMessages(t *testing.T) {
	var before, after runtime.MemStats
	for name, c := range map[string]struct {
		response *discoveryv3.DiscoveryResponse
		want     string
	}{
		"too large":          {answerOf("v", 1, make([]byte, defaultMessageBytes+1)), "raise MaxMessageBytes"},
		"empty descriptors":  {answerOf("v", 1, []byte(strings.Repeat("\x1a\x00", 16<<20))), "more than 1000000 descriptors"},
		"a long version":     {answerOf(strings.Repeat("v", 8<<20), 1), "more than 4096 bytes"},
		"a version with gap": {answerOf("v\n", 1, []byte{0xff}), `version "v\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(stream adsStream) error {
				if _, err := stream.Recv(); err != nil {
					return err
				}
				runtime.ReadMemStats(&before)
				if err := stream.Send(c.response); err != nil {
					return err
				}
				_, err := stream.Recv()
				return err
			}, func(t *testing.T, _ *scripted, i *instance) {
				t.Helper()
				await(t, "a fault", func() bool {
					_, faults, _ := i.known()
					return len(faults) > 0
				})
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 400<<20 {
					t.Errorf("the response allocated %d MiB", used>>20)
				}
				if _, faults, _ := i.known(); !strings.Contains(faults[0].Error(), c.want) {
					t.Errorf("the fault is %v, want %q", faults[0], c.want)
				}
			})
		})
	}
}

// TestFollowEnds ends Follow in every state: before a connection, during apply and during a pause.
func TestFollowEnds(t *testing.T) {
	good := valid(t, "a", "bad")
	for _, after := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		play(t, func(stream adsStream) error {
			for {
				if _, err := stream.Recv(); err != nil {
					return err
				}
				if err := stream.Send(answerOf("v", 1, good)); err != nil {
					return err
				}
			}
		}, func(t *testing.T, _ *scripted, i *instance) {
			t.Helper()
			<-time.After(after)
			began := time.Now()
			i.stop(t)
			if elapsed := time.Since(began); elapsed > 0 {
				t.Errorf("Follow returned %v after its context ended", elapsed)
			}
		})
	}
}

// TestEmptySet applies a set without resources: the server has removed all domains.
func TestEmptySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		c := start(t, n.listen())
		c.publish(t, "v1", domain("first", "good"))
		s := n.source(t, Config{NodeMetadata: map[string]string{"zone": "a"}, Headers: map[string]string{"x-token": "secret"}})
		i := follow(t, s, nil)
		i.awaitValue(t, "good")
		c.publish(t, "v2")
		i.awaitValue(t, "")
		synctest.Wait()
		requests, _ := c.received()
		for k, want := range []string{"", "v1", "v2"} {
			r := requests[k]
			if r.GetVersionInfo() != want || r.GetTypeUrl() != TypeURL || len(r.GetResourceNames()) != 0 ||
				r.GetNode().GetId() != node || r.GetNode().GetMetadata().GetFields()["zone"].GetStringValue() != "a" {
				t.Errorf("message %d is %v, want version %q, the node and no resource names", k, r, want)
			}
		}
		if got := header(c.stream, "x-token"); got != "secret" {
			t.Errorf("the header is %q", got)
		}
		i.stop(t)
		c.stop()
	})
}

func header(ctx context.Context, name string) string {
	return strings.Join(incoming(ctx, name), ",")
}
