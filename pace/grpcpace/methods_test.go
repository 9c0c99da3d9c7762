package grpcpace_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/grpcpace"
)

// Which pacer a method has.
func TestMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		methods := map[string]*pace.Pacer{"/mail.v1.Mail/Health": nil}
		for _, name := range []string{"/mail.v1.Mail/Send", "/mail.v1.Mail/*", "/mail.v1.Other/*"} {
			methods[name] = pacerOf(t, name, 1000, time.Second)
		}
		var s server
		for _, others := range []bool{false, true} {
			if others {
				methods["*"] = pacerOf(t, "*", 1000, time.Second)
			}
			paced, err := grpcpace.New(grpcpace.Config{Methods: methods})
			if err != nil {
				t.Fatal(err)
			}
			for method, want := range map[string]string{
				"/mail.v1.Mail/Send": "/mail.v1.Mail/Send", "/mail.v1.Mail/Send2": "/mail.v1.Mail/*", "/mail.v1.Mail/": "/mail.v1.Mail/*",
				"/mail.v1.Other/Send": "/mail.v1.Other/*", "/mail.v1.Mail/Health": "", "/mail.v1.Mailer/Send": "*", "": "*", "x": "*",
			} {
				if !others {
					want = strings.TrimPrefix(want, "*")
					if strings.HasSuffix(method, "/Send2") || method == "/mail.v1.Mail/" {
						want = "/mail.v1.Mail/*"
					}
				}
				before := sent(paced)
				if err := paced.Unary(t.Context(), method, nil, nil, nil, s.invoke); err != nil {
					t.Errorf("%s: %v", method, err)
				}
				for name, n := range sent(paced) {
					if n != before[name] != (name == want) {
						t.Errorf("%q: %q was asked %d times, want %q", method, name, n-before[name], want)
					}
				}
			}
		}
	})
}

func sent(paced *grpcpace.Pacing) map[string]uint64 {
	n := make(map[string]uint64)
	for _, s := range paced.Stats() {
		n[s.Provider] = s.Sent
	}
	return n
}

// By target and method; and what a call costs.
func TestPacerOfTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 1000, time.Second)
		var asked string
		paced, err := grpcpace.New(grpcpace.Config{
			Pacer: func(target, method string) *pace.Pacer {
				if asked = target + " " + method; method == send {
					return p
				}
				return nil
			},
			Cost: func(_ string, message any) int64 { return int64(len(message.(string))) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var s server
		for message, want := range map[string]uint64{"": 0, "abc": 3} {
			before := p.Stats().Acquired
			if err := paced.Unary(t.Context(), send, message, nil, conn(t), s.invoke); err != nil || asked != "passthrough:mail "+send {
				t.Errorf("%v; asked for %s", err, asked)
			}
			if got := p.Stats().Acquired - before; got != want {
				t.Errorf("%q takes %d units, want %d", message, got, want)
			}
		}
		if err := paced.Unary(t.Context(), "/free", "abc", nil, conn(t), s.invoke); err != nil || p.Stats().Acquired != 3 {
			t.Errorf("%v: %d units", err, p.Stats().Acquired)
		}
		_, err = paced.Stream(t.Context(), &grpc.StreamDesc{}, conn(t), "/free",
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, nil //nolint:nilnil // There is nothing to see.
			})
		if err != nil || p.Stats().Acquired != 3 {
			t.Errorf("%v: %d units", err, p.Stats().Acquired)
		}
	})
}

// What cannot be meant is said when the Pacing is made.
func TestConfig(t *testing.T) {
	choose := func(string, string) *pace.Pacer { return nil }
	configs := map[string]grpcpace.Config{
		"neither": {}, "both": {Methods: map[string]*pace.Pacer{}, Pacer: choose},
	}
	for _, name := range []string{"", "/", "//", "/s", "/s/", "s/m", "//m", "/a/b/m", "/s*/m", "/s/m*", "/*/m", "**"} {
		configs[name] = grpcpace.Config{Methods: map[string]*pace.Pacer{name: nil}}
	}
	for name, c := range configs {
		if paced, err := grpcpace.New(c); err == nil || paced != nil || !strings.Contains(err.Error(), "grpcpace: Config") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
