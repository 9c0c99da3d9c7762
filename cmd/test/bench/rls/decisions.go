package rls

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// Bars of the decisions of headgate.v1 and of HTTP.
const (
	barStream  = 0.55 // Processor time of a message with one request on a stream / a unary call of Envoy's service.
	barRequest = 1200 // Processor time of a request in a message of 100 on a stream, in nanoseconds.
	barGet     = 1.35 // Processor time of a subrequest / a bare 204 of net/http.
	barPost    = 1.6  // Processor time of a POST of one request / a bare 204 of net/http.
)

// Names of the sides.
const (
	sideStream = "headgate.v1 stream"
	sideGet    = "GET /v1/decide"
	sidePost   = "POST /v1/decide"
	sideBare   = "bare 204"
	sideSame   = "204 with the fields of GET"
)

// decides is headgate server with one rule, and Envoy's domain. web is the address of its HTTP listener.
func (p *place) decides(ctx context.Context) (s *servers.Server, web string, err error) {
	config := filepath.Join(p.dir, "decides.yaml")
	s, err = p.serve(ctx, func(addr, port string) []string {
		web = second(port)
		text := fmt.Sprintf("version: 1\nserver: {grpc: %q, http: {address: %q, max_connections: 1024}}\n"+
			"admin: {listen: \"127.0.0.1:0\", health: \"off\"}\nidentity: {trusted_proxies: [127.0.0.1]}\n"+
			"rules: [{name: user, match: {path: /a}, key: [\"header:X-User\"], limits: [%d/1d]}]\n"+
			"domains: {bench: {descriptors: [{key: user, limits: %d/1d}]}}\n", addr, web, limit, limit)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return []string{"false"} // The server then ends at once, and its log says why.
		}
		return []string{p.programs.path("headgate"), "server", "--config", config}
	})
	return s, web, err
}

// asker has a stream for each worker.
type asker struct {
	clients  []*grpc.ClientConn
	streams  []grpc.ClientStream
	messages []*headgatev1.DecideRequest
}

// ask opens the streams of some workers. Each message has n requests.
func (p *place) ask(ctx context.Context, addr string, workers, n int) (*asker, error) {
	a := &asker{}
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("rls: %w", err)
		}
		p.closes = append(p.closes, func() { _ = conn.Close() })
		a.clients = append(a.clients, conn)
	}
	for w := range workers {
		both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
		of, err := a.clients[w%connections].NewStream(ctx, both, "/headgate.v1.Decisions/Stream")
		if err != nil {
			return nil, fmt.Errorf("rls: %w", err)
		}
		a.streams = append(a.streams, of)
	}
	for first := range users / n {
		m := new(headgatev1.DecideRequest)
		for i := range n {
			headers := map[string]string{"x-user": customer(first*n + i)}
			m.Requests = append(m.Requests, &headgatev1.Request{Method: "GET", Path: "/a", Headers: headers})
		}
		a.messages = append(a.messages, m)
	}
	return a, nil
}

func customer(n int) string { return fmt.Sprintf("customer-%07d", n) }

// run decides n requests, one message after another.
func (a *asker) run(worker, n int) (t contest.Tally) {
	for i := 0; n > 0; i++ {
		m := a.messages[(worker*31+i)%len(a.messages)]
		if n < len(m.GetRequests()) {
			m = &headgatev1.DecideRequest{Requests: m.GetRequests()[:n]}
		}
		n -= len(m.GetRequests())
		out := new(headgatev1.DecideResponse)
		err := a.streams[worker].SendMsg(m)
		if err == nil {
			err = a.streams[worker].RecvMsg(out)
		}
		if err != nil {
			t = t.Add(contest.Failure(err))
			return t
		}
		for _, one := range out.GetAnswers() {
			if one.GetVerdict() == headgatev1.Verdict_VERDICT_ALLOW && one.GetPolicy() == "user" {
				t.Allowed++
			} else {
				t.Denied++
			}
		}
	}
	return t
}

// streams compares messages of one request on streams with unary calls of Envoy's service to the same program.
func streams(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, _, err := p.decides(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	a, err := p.ask(ctx, s.Addr, 64, 1)
	if err != nil {
		return contest.Result{}, err
	}
	other, _, err := p.decides(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	unary, err := p.side(sideOurs, contest.Peer, other)
	if err != nil {
		return contest.Result{}, err
	}
	c := contest.Contest{
		Name: "server, stream", Workers: 64, Least: contest.Batch,
		About: "processor time of the server for a message with one request on a stream, beside a unary call of Envoy's " +
			"service; memory store, metrics on, 64 callers with a stream each, 8 connections",
		Sides: []contest.Side{{Name: sideStream, Kind: contest.Ours, Run: a.run, Meters: meter(s)}, unary},
		Questions: []contest.Question{
			{Of: sideStream, Against: sideOurs, Meter: serverCPU, Bar: barStream}, {Of: sideStream, Against: sideOurs},
		},
	}
	return c.Measure(ctx, e)
}

// requests measures the processor time of a request in a message of 100 on a stream.
func requests(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, _, err := p.decides(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	a, err := p.ask(ctx, s.Addr, 64, perMessage)
	if err != nil {
		return contest.Result{}, err
	}
	c := contest.Contest{
		Name: "server, 100 requests", Workers: 64, Least: 100 * contest.Batch,
		About:     "processor time of the server for a request, 100 in a message on a stream; memory store, metrics on, 64 callers",
		Sides:     []contest.Side{{Name: sideStream, Kind: contest.Ours, Run: a.run, Meters: meter(s)}, nothing()},
		Questions: []contest.Question{{Of: sideStream, Against: sideZero, Meter: serverCPU, Difference: true, Bar: barRequest}},
	}
	return c.Measure(ctx, e)
}

// web compares decisions over HTTP with a bare 204.
func web(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	subrequest := func(at string, n int) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/decide?from=original", http.NoBody)
		if err == nil {
			r.Header["X-Original-Method"], r.Header["X-Original-Uri"] = []string{http.MethodGet}, []string{"/a"}
			r.Header["X-User"] = []string{customer(n)}
		}
		return r, err
	}
	sides := []contest.Side{}
	for _, one := range []struct {
		name string
		make func(at string, n int) (*http.Request, error)
	}{
		{sideGet, subrequest},
		{sidePost, func(at string, n int) (*http.Request, error) {
			body := []byte(`{"method":"GET","path":"/a","headers":{"x-user":"` + customer(n) + `"}}`)
			return http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/v1/decide", bytes.NewReader(body))
		}},
	} {
		s, at, err := p.decides(ctx)
		if err != nil {
			return contest.Result{}, err
		}
		sides = append(sides, contest.Side{
			Name: one.name, Kind: contest.Ours, Meters: meter(s),
			Run: callHTTP(func(n int) (*http.Request, error) { return one.make(at, n) }, `"user"`),
		})
	}
	for _, one := range []struct {
		name, told string
		make       func(at string, n int) (*http.Request, error)
	}{
		{sideBare, "", func(at string, _ int) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", http.NoBody)
		}},
		{sideSame, `"user"`, subrequest},
	} {
		s, at, err := p.bare(ctx)
		if err != nil {
			return contest.Result{}, err
		}
		sides = append(sides, contest.Side{
			Name: one.name, Kind: contest.Floor, Meters: meter(s),
			Run: callHTTP(func(n int) (*http.Request, error) { return one.make(at, n) }, one.told),
		})
	}
	c := contest.Contest{
		Name: "server, HTTP", Workers: 64, Least: contest.Batch, Sides: sides,
		About: "processor time of the server for a request over HTTP/1.1, beside a 204 of net/http with the same timeouts; memory " +
			"store, metrics on, 64 connections",
		Questions: []contest.Question{
			{Of: sideGet, Against: sideBare, Meter: serverCPU, Bar: barGet},
			{Of: sidePost, Against: sideBare, Meter: serverCPU, Bar: barPost},
			{Of: sideSame, Against: sideBare, Meter: serverCPU}, // What the fields alone cost in net/http.
		},
	}
	return c.Measure(ctx, e)
}

// bare is a 204 of net/http.
func (p *place) bare(ctx context.Context) (s *servers.Server, at string, err error) {
	s, err = p.serve(ctx, func(addr, port string) []string {
		at = second(port)
		return []string{p.programs.path("bare204"), addr, at}
	})
	return s, at, err
}

// second gives the other address that package servers keeps free for a program with a port.
func second(port string) string {
	const beside = 10_000
	number, _ := strconv.Atoi(port) // The port is a number.
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(number+beside))
}

// callHTTP makes requests of each worker on a connection of its own. The answer, or a field of it, has the text.
func callHTTP(request func(n int) (*http.Request, error), text string) func(worker, n int) contest.Tally {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, MaxIdleConns: 1024, DisableCompression: true}}
	return func(worker, n int) (t contest.Tally) {
		for i := range n {
			r, err := request((worker*31 + i) % users)
			if err != nil {
				return t.Add(contest.Failure(err))
			}
			answer, err := client.Do(r)
			if err != nil {
				return t.Add(contest.Failure(err))
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			told := text == "" || bytes.Contains(body, []byte(text)) || strings.Contains(answer.Header.Get("Ratelimit"), text)
			switch {
			case err != nil || answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusBadRequest || !told:
				return t.Add(contest.Failure(fmt.Errorf("rls: status %d: %s, %w", answer.StatusCode, body, err)))
			case answer.StatusCode < http.StatusMultipleChoices:
				t.Allowed++
			default:
				t.Denied++
			}
		}
		return t
	}
}

// nothing is a side that takes no processor time.
func nothing() contest.Side {
	return contest.Side{
		Name: sideZero, Kind: contest.Floor,
		Run: func(_, n int) contest.Tally {
			<-time.After(time.Duration(n) * time.Microsecond)
			return contest.Tally{Allowed: n}
		},
		Meters: []contest.Meter{{Name: serverCPU, Read: func() (time.Duration, error) { return 0, nil }}},
	}
}
