package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// behindBoth serves s behind two guards and returns a client for it.
func behindBoth(t *testing.T, outer, inner *guard.Guard, s *service, o grpclimit.Options) testgrpc.TestServiceClient {
	t.Helper()
	return dial(t, listen(t, grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(outer, o), grpclimit.Unary(inner, o)),
		grpc.ChainStreamInterceptor(grpclimit.Stream(outer, o), grpclimit.Stream(inner, o)),
	), s))
}

// exchanged is the result of a call.
type exchanged struct {
	header, trailer metadata.MD
	err             error
}

// eachWay calls a service with a unary call and with a stream.
func eachWay(ctx context.Context, t *testing.T, client testgrpc.TestServiceClient, check func(way string, got exchanged)) {
	t.Helper()
	header, trailer, err := call(ctx, client)
	check("unary", exchanged{header, trailer, err})
	s, err := client.StreamingOutputCall(ctx, anAnswer())
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Recv()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	header, _ = s.Header()
	check("stream", exchanged{header, s.Trailer(), err})
}

// twoRules returns one rule for each of two guards.
func twoRules(t *testing.T, count [2]int64, change ...func(outer, inner *guard.Rule)) (outer, inner guard.Rule) {
	t.Helper()
	outer = limited(t, "outer", anyMethod, headgate.Limit{Count: count[0], Per: time.Hour}, "ip")
	inner = limited(t, "inner", anyMethod, headgate.Limit{Count: count[1], Per: time.Minute}, "ip")
	for _, c := range change {
		c(&outer, &inner)
	}
	return outer, inner
}

func guardOf(t *testing.T, r guard.Rule) *guard.Guard {
	t.Helper()
	return newGuard(t, guard.Config{Rules: []guard.Rule{r}})
}

// TestTwoGuards checks a second guard around a service. It keeps the first guard's marks and
// fields and adds its own. It still removes the client's values under these names.
func TestTwoGuards(t *testing.T) {
	const first, second = `soft-limit; policy="outer"`, `soft-limit; policy="inner"`
	bySoft := func(outer, inner int) func(o, i *guard.Rule) {
		return func(o, i *guard.Rule) { o.Soft, i.Soft = outer, inner }
	}
	degrade := func(o, i *guard.Rule) {
		o.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Service-Level", Value: "basic"}
		i.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Service-Level", Value: "least"}
	}
	for _, c := range []struct {
		name           string
		count          [2]int64
		change         func(o, i *guard.Rule)
		warning, level []string
	}{
		{"the first warns", [2]int64{10, 10}, bySoft(1, 99), []string{first}, nil},
		{"both warn", [2]int64{10, 10}, bySoft(1, 1), []string{first, second}, nil},
		{"the second warns", [2]int64{10, 10}, bySoft(99, 1), []string{second}, nil},
		{"none warns", [2]int64{10, 10}, bySoft(99, 99), nil, nil},
		{"the first degrades", [2]int64{0, 10}, degrade, nil, []string{"basic"}},
		{"both degrade", [2]int64{0, 0}, degrade, nil, []string{"basic", "least"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer, inner := twoRules(t, c.count, c.change)
			var seen metadata.MD
			behind := &service{called: func(ctx context.Context) error {
				seen, _ = metadata.FromIncomingContext(ctx)
				return nil
			}}
			client := behindBoth(t, guardOf(t, outer), guardOf(t, inner), behind, grpclimit.Options{})
			forged := with(t, "headgate-warning", "forged", "headgate-warning", first, "x-service-level", "gold")
			eachWay(forged, t, client, func(way string, got exchanged) {
				if got.err != nil {
					t.Fatalf("%s: the call failed: %v", way, got.err)
				}
				if got := seen["headgate-warning"]; !slices.Equal(got, c.warning) {
					t.Errorf("%s: the service got the warning %q, want %q", way, got, c.warning)
				}
				if level := seen["x-service-level"]; c.level != nil && !slices.Equal(level, c.level) {
					t.Errorf("%s: the service got the level %q, want %q", way, level, c.level)
				}
				warnings := got.header["headgate-warning"]
				slices.Sort(warnings)
				want := slices.Sorted(slices.Values(c.warning))
				if !slices.Equal(warnings, want) {
					t.Errorf("%s: the caller got the warning %q, want %q", way, warnings, want)
				}
				wantBoth(t, way, got.header)
				if len(got.trailer) > 0 {
					t.Errorf("%s: got trailer %v", way, got.trailer)
				}
			})
		})
	}
}

// wantBoth checks that a call has the fields of both guards.
func wantBoth(t *testing.T, way string, got metadata.MD) {
	t.Helper()
	for _, name := range []string{"ratelimit", "ratelimit-policy"} {
		all := strings.Join(got[name], ", ")
		if len(got[name]) != 2 || !strings.Contains(all, `"outer"`) || !strings.Contains(all, `"inner"`) {
			t.Errorf("%s: %s = %q, want an item from each guard", way, name, got[name])
		}
	}
}

// TestTwoGuardsOfOneNumber checks that a field with one number comes from the first guard,
// as with HTTP. All other fields have values of both guards, whichever guard refuses.
func TestTwoGuardsOfOneNumber(t *testing.T) {
	for style, prefix := range map[fields.Style]string{fields.XRateLimit: "x-ratelimit-", fields.Draft03: "ratelimit-"} {
		for name, count := range map[string][2]int64{"pass": {10, 20}, "the second refuses": {10, 0}, "the first refuses": {0, 20}} {
			t.Run(style.String()+", "+name, func(t *testing.T) {
				outer, inner := twoRules(t, count, func(_, i *guard.Rule) { i.Soft = 1 })
				o := grpclimit.Options{Style: style}
				client := behindBoth(t, guardOf(t, outer), guardOf(t, inner), new(service), o)
				eachWay(with(t), t, client, func(way string, got exchanged) {
					all := metadata.Join(got.header, got.trailer)
					if limit := all[prefix+"limit"]; !slices.Equal(limit, []string{strconv.FormatInt(count[0], 10)}) {
						t.Errorf("%s: got limit %q, want the first guard's", way, limit)
					}
					if n := len(all[prefix+"remaining"]) + len(all[prefix+"reset"]); n != 2 {
						t.Errorf("%s: got %v, want one number per field", way, all)
					}
					if n := len(all["headgate-warning"]); (n == 1) != (name == "pass") {
						t.Errorf("%s: got %d warnings of the second guard", way, n)
					}
				})
			})
		}
	}
}

// TestSecondGuardRefuses checks a call that the second guard refuses. The call has the first
// guard's fields, and the second guard's status, details and pushback.
func TestSecondGuardRefuses(t *testing.T) {
	outer, inner := twoRules(t, [2]int64{10, 0}, func(o, _ *guard.Rule) { o.Soft = 1 })
	behind := new(service)
	client := behindBoth(t, guardOf(t, outer), guardOf(t, inner), behind, grpclimit.Options{})
	eachWay(with(t), t, client, func(way string, got exchanged) {
		expect(t, got.err, codes.ResourceExhausted)
		want := details{reason: "NEVER", retry: -1, violated: "inner"}
		if d := detailsOf(t, got.err); d != want {
			t.Errorf("%s: got details %+v, want %+v", way, d, want)
		}
		if pushback := got.trailer["grpc-retry-pushback-ms"]; !slices.Equal(pushback, []string{"-1"}) {
			t.Errorf("%s: got pushback %q", way, pushback)
		}
		if warning := got.trailer["headgate-warning"]; !slices.Equal(warning, []string{`soft-limit; policy="outer"`}) {
			t.Errorf("%s: got warning %q", way, warning)
		}
		wantBoth(t, way, got.trailer)
		if len(got.header) > 0 {
			t.Errorf("%s: got header %v, want only a trailer", way, got.header)
		}
	})
	if n := behind.calls.Load(); n > 0 {
		t.Errorf("the service saw %d calls, want 0", n)
	}
}
